// variants: 6
__global__ void fill(int* values, int value) { values[threadIdx.x] = value; }
__global__ void add(int* values, int value) { values[threadIdx.x] += value; }

int main() {
  int *values, *pinned;
  cudaMalloc(&values, 128 * sizeof(int));
  cudaMallocHost(&pinned, 128 * sizeof(int));
  cudaStream_t first, second;
  cudaEvent_t event;
  cudaStreamCreate(&first);
  cudaStreamCreate(&second);
  cudaEventCreate(&event);
#if VARIANT == 1  // the default stream waits for the others, and they for it
  fill<<<1, 128, 0, first>>>(values, 1);
  add<<<1, 128>>>(values, 1);
  add<<<1, 128, 0, second>>>(values, 1);
  cudaStreamSynchronize(second);
#elif VARIANT == 2  // two streams with memory of their own
  fill<<<1, 64, 0, first>>>(values, 2);
  fill<<<1, 64, 0, second>>>(values + 64, 2);
  add<<<1, 64, 0, first>>>(values, 1);
  add<<<1, 64, 0, second>>>(values + 64, 1);
  cudaDeviceSynchronize();
#elif VARIANT == 3  // there and back by events
  cudaEvent_t back;
  cudaEventCreateWithFlags(&back, cudaEventDisableTiming);
  fill<<<1, 128, 0, first>>>(values, 1);
  cudaEventRecord(event, first);
  cudaStreamWaitEvent(second, event, 0);
  add<<<1, 128, 0, second>>>(values, 1);
  cudaEventRecord(back, second);
  cudaStreamWaitEvent(first, back, 0);
  add<<<1, 128, 0, first>>>(values, 1);
  cudaEventSynchronize(back);
  cudaStreamSynchronize(first);
#elif VARIANT == 4  // a graph, captured and launched twice
  cudaGraph_t graph;
  cudaGraphExec_t run;
  fill<<<1, 128, 0, first>>>(values, 1);
  cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal);
  add<<<1, 128, 0, first>>>(values, 1);
  cudaStreamEndCapture(first, &graph);
  cudaGraphInstantiate(&run, graph, nullptr, nullptr, 0);
  cudaGraphLaunch(run, first);
  cudaGraphLaunch(run, first);
  cudaStreamSynchronize(first);
#elif VARIANT == 5  // the host waits by asking
  fill<<<1, 128, 0, first>>>(values, 3);
  cudaEventRecord(event, first);
  while (cudaEventQuery(event) == cudaErrorNotReady) {
  }
#else  // a pinned buffer used again after its copy has ended
  for (int value = 0; value < 4; ++value) {
    cudaEventSynchronize(event);
    for (int i = 0; i < 128; ++i) pinned[i] = value;
    cudaMemcpyAsync(values, pinned, 128 * sizeof(int), cudaMemcpyHostToDevice, first);
    cudaEventRecord(event, first);
  }
  cudaStreamSynchronize(first);
#endif
  cudaMemcpyAsync(pinned, values, 128 * sizeof(int), cudaMemcpyDeviceToHost, second);
  cudaStreamSynchronize(second);
  return pinned[0] != 3 || pinned[127] != 3;
}
