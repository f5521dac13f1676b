// Graphs as lists of closures. The operations of a captured stream become nodes of a graph, each after the one before.
#pragma once
#include "machine.hpp"

#include <functional>
#include <memory>

namespace emulator {
using Operation = std::function<cudaError_t(cudaStream_t)>;
}
struct CUgraphNode_st {
  cudaGraphNodeType type;
  std::shared_ptr<emulator::Operation> run;
  std::vector<CUgraphNode_st*> needs;
};
struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
};
struct CUgraphExec_st {
  std::vector<std::pair<cudaGraphNode_t, emulator::Operation>> steps;
};
struct CUmemPoolHandle_st {
  uint64_t release_threshold = 0;
};

namespace emulator {
inline std::map<cudaStream_t, cudaGraph_t> captures;  // a stream joins a capture when it waits for an event of it
inline std::map<cudaEvent_t, cudaGraph_t> captured_events;

bool is_capturing(cudaStream_t stream) { return captures.count(stream) != 0; }

inline cudaGraphNode_t add_node(cudaGraph_t graph, cudaGraphNodeType type, const cudaGraphNode_t* needs, size_t count,
                                Operation run) {
  graph->nodes.push_back(std::make_unique<CUgraphNode_st>());
  CUgraphNode_st& node = *graph->nodes.back();
  node.type = type, node.run = std::make_shared<Operation>(std::move(run)), node.needs.assign(needs, needs + count);
  return &node;
}
inline cudaError_t record(cudaStream_t stream, cudaGraphNodeType type, Operation run) {
  const cudaGraph_t graph = captures[stream];
  const cudaGraphNode_t before = graph->nodes.empty() ? nullptr : graph->nodes.back().get();
  add_node(graph, type, &before, before != nullptr, std::move(run));
  return cudaSuccess;
}
void record_closure(cudaStream_t stream, void (*run)(void*, cudaStream_t), void* closure) {
  record(stream, cudaGraphNodeTypeKernel, [=](cudaStream_t later) { return run(closure, later), cudaPeekAtLastError(); });
}

// The nodes in an order in which each comes after those that it needs. Empty if there is a circle.
inline std::vector<cudaGraphNode_t> arrange(cudaGraph_t graph) {
  std::vector<cudaGraphNode_t> order;
  std::map<cudaGraphNode_t, bool> is_done;
  for (size_t begin = size_t(-1); order.size() != begin;) {
    begin = order.size();
    for (const auto& node : graph->nodes) {
      const auto is_ready = [&](cudaGraphNode_t need) { return is_done[need]; };
      if (is_done[node.get()] || !std::all_of(node->needs.begin(), node->needs.end(), is_ready)) continue;
      is_done[node.get()] = true;
      order.push_back(node.get());
    }
  }
  return order.size() == graph->nodes.size() ? order : std::vector<cudaGraphNode_t>();
}
inline cudaError_t run_steps(const std::vector<std::pair<cudaGraphNode_t, Operation>>& steps, cudaStream_t stream) {
  for (const auto& step : steps)
    if (const cudaError_t error = step.second(stream)) return error;
  return cudaSuccess;
}
inline cudaError_t fill_rows(const cudaMemsetParams& parameters) {
  for (size_t row = 0; row < parameters.height; ++row) {
    char* begin = static_cast<char*>(parameters.dst) + row * parameters.pitch;
    if (!reach_from_library(begin, parameters.width * parameters.elementSize, true)) return cudaErrorInvalidValue;
    for (size_t i = 0; i < parameters.width; ++i)
      memcpy(begin + i * parameters.elementSize, &parameters.value, parameters.elementSize);
  }
  return cudaSuccess;
}
inline cudaError_t copy_box(const cudaMemcpy3DParms& parameters, cudaStream_t stream) {
  const auto place = [](const cudaPitchedPtr& box, const cudaPos& first, size_t slice, size_t row) {
    return static_cast<char*>(box.ptr) + first.x + ((first.z + slice) * box.ysize + first.y + row) * box.pitch;
  };
  for (size_t slice = 0; slice < parameters.extent.depth; ++slice)
    for (size_t row = 0; row < parameters.extent.height; ++row)
      if (const cudaError_t error = copy(place(parameters.dstPtr, parameters.dstPos, slice, row),
                                         place(parameters.srcPtr, parameters.srcPos, slice, row), parameters.extent.width,
                                         parameters.kind, stream, false))
        return error;
  return cudaSuccess;
}
inline Operation bind(const cudaKernelNodeParams& parameters) {
  const KernelFunction& kernel = parameters.func;
  if (!kernel.bind) return nullptr;
  const dim3 grid = parameters.gridDim, block = parameters.blockDim;
  const auto bound = kernel.bind(kernel.function, grid, block, parameters.sharedMemBytes, parameters.kernelParams);
  return [=](cudaStream_t stream) { return bound.run(bound.closure, stream), cudaPeekAtLastError(); };
}
inline cudaError_t list_nodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count, bool only_roots) {
  size_t number = 0;
  for (const auto& node : graph->nodes) {
    if (only_roots && !node->needs.empty()) continue;
    if (nodes && number < *count) nodes[number] = node.get();
    ++number;
  }
  *count = nodes ? std::min(*count, number) : number;
  return cudaSuccess;
}
}  // namespace emulator

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (!stream || emulator::is_capturing(stream)) return emulator::keep(cudaErrorIllegalState);
  emulator::captures[stream] = new CUgraph_st;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (!emulator::is_capturing(stream)) return emulator::keep(cudaErrorIllegalState);
  *graph = emulator::captures[stream];
  for (auto each = emulator::captures.begin(); each != emulator::captures.end();)
    each = each->second == *graph ? emulator::captures.erase(each) : std::next(each);
  for (auto each = emulator::captured_events.begin(); each != emulator::captured_events.end();)
    each = each->second == *graph ? emulator::captured_events.erase(each) : std::next(each);
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = emulator::is_capturing(stream) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) { return *graph = new CUgraph_st, cudaSuccess; }
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphClone(cudaGraph_t* copy, cudaGraph_t graph) {
  std::map<cudaGraphNode_t, cudaGraphNode_t> copies;
  *copy = new CUgraph_st;
  for (const auto& node : graph->nodes) copies[node.get()] = emulator::add_node(*copy, node->type, nullptr, 0, *node->run);
  for (const auto& node : graph->nodes)
    for (const cudaGraphNode_t need : node->needs) copies[node.get()]->needs.push_back(copies[need]);
  return cudaSuccess;
}
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs, size_t count,
                                   const cudaKernelNodeParams* parameters) {
  emulator::Operation run = emulator::bind(*parameters);
  if (!run) return emulator::keep(cudaErrorInvalidDeviceFunction);
  return *node = emulator::add_node(graph, cudaGraphNodeTypeKernel, needs, count, run), cudaSuccess;
}
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs, size_t count,
                                   const cudaMemcpy3DParms* parameters) {
  if (parameters->srcArray || parameters->dstArray) return emulator::keep(cudaErrorNotSupported);
  const auto run = [box = *parameters](cudaStream_t stream) { return emulator::copy_box(box, stream); };
  return *node = emulator::add_node(graph, cudaGraphNodeTypeMemcpy, needs, count, run), cudaSuccess;
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs, size_t count,
                                     void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const auto run = [=](cudaStream_t stream) { return emulator::copy(to, from, bytes, kind, stream, false); };
  return *node = emulator::add_node(graph, cudaGraphNodeTypeMemcpy, needs, count, run), cudaSuccess;
}
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs, size_t count,
                                   const cudaMemsetParams* parameters) {
  const auto run = [rows = *parameters](cudaStream_t) { return emulator::fill_rows(rows); };
  return *node = emulator::add_node(graph, cudaGraphNodeTypeMemset, needs, count, run), cudaSuccess;
}
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs, size_t count,
                                 const cudaHostNodeParams* parameters) {
  const auto run = [call = *parameters](cudaStream_t) { return call.fn(call.userData), cudaSuccess; };
  return *node = emulator::add_node(graph, cudaGraphNodeTypeHost, needs, count, run), cudaSuccess;
}
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs, size_t count) {
  const auto run = [](cudaStream_t) { return cudaSuccess; };
  return *node = emulator::add_node(graph, cudaGraphNodeTypeEmpty, needs, count, run), cudaSuccess;
}
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* needs, size_t count,
                                       cudaGraph_t child) {
  cudaGraphExec_t steps;  // lives as long as the program
  if (const cudaError_t error = cudaGraphInstantiate(&steps, child)) return error;
  const auto run = [steps](cudaStream_t stream) { return emulator::run_steps(steps->steps, stream); };
  return *node = emulator::add_node(graph, cudaGraphNodeTypeGraph, needs, count, run), cudaSuccess;
}
cudaError_t cudaGraphAddDependencies(cudaGraph_t, const cudaGraphNode_t* from, const cudaGraphNode_t* to, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i]->needs.push_back(from[i]);
  return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return emulator::list_nodes(graph, nodes, count, false);
}
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return emulator::list_nodes(graph, nodes, count, true);
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) { return *type = node->type, cudaSuccess; }
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  const std::vector<cudaGraphNode_t> order = emulator::arrange(graph);
  if (order.empty() && !graph->nodes.empty()) return emulator::keep(cudaErrorInvalidValue);
  *exec = new CUgraphExec_st;
  for (const cudaGraphNode_t node : order) (*exec)->steps.emplace_back(node, *node->run);
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, cudaGraphNode_t*, char*, size_t) {
  return cudaGraphInstantiate(exec, graph);
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  return cudaGraphInstantiate(exec, graph);
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  if (emulator::is_capturing(stream))
    return emulator::record(stream, cudaGraphNodeTypeGraph,
                            [steps = exec->steps](cudaStream_t later) { return emulator::run_steps(steps, later); });
  return emulator::run_steps(exec->steps, stream);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return cudaSuccess;
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* parameters) {
  emulator::Operation run = emulator::bind(*parameters);
  for (auto& step : exec->steps)
    if (run && step.first == node) return step.second = run, cudaSuccess;
  return emulator::keep(cudaErrorInvalidValue);
}

namespace emulator {
inline CUmemPoolHandle_st default_pool;
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) { return *pool = &emulator::default_pool, cudaSuccess; }
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int) { return *pool = &emulator::default_pool, cudaSuccess; }
cudaError_t cudaDeviceSetMemPool(int, cudaMemPool_t) { return cudaSuccess; }
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps*) {
  return *pool = new CUmemPoolHandle_st, cudaSuccess;
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  if (pool != &emulator::default_pool) delete pool;
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, size_t) { return cudaSuccess; }
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  if (attribute == cudaMemPoolAttrReleaseThreshold) pool->release_threshold = *static_cast<uint64_t*>(value);
  return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  switch (attribute) {
    case cudaMemPoolReuseFollowEventDependencies:
    case cudaMemPoolReuseAllowOpportunistic:
    case cudaMemPoolReuseAllowInternalDependencies: *static_cast<int*>(value) = 1; break;
    case cudaMemPoolAttrReleaseThreshold: *static_cast<uint64_t*>(value) = pool->release_threshold; break;
    default: *static_cast<uint64_t*>(value) = emulator::arena.live;
  }
  return cudaSuccess;
}
