/* A toy inference engine: it makes the CUDA calls of a real one in the same order, and keeps a ledger of what it did.

   engine LAYERS SEED; it reads commands from standard input, one per line, and answers each with one line of JSON:
     load                     load the weights; a request loads them first if they are not loaded yet
     request PROMPT TOKENS    one request: a prompt of PROMPT tokens, for which TOKENS tokens are generated
     ledger                   what the engine really did; every trace has to match it
   It ends when its input ends. The seed decides the sizes, and which of the three buffers is not always freed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  unsigned x, y, z;
} dim3;
int cudaMalloc(void **, size_t);
int cudaFree(void *);
int cudaMemcpy(void *, const void *, size_t, int);
int cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, void *);
int cudaDeviceSynchronize(void);

enum { PAGE = 16, MAX_PAGES = 4096, TO_DEVICE = 1, TO_HOST = 2 }; /* PAGE: tokens per page of the cache */
enum { LOAD_WEIGHTS, COPY_PROMPT, GROW_CACHE, ALLOCATE_LOGITS, SITES };
enum { EMBED_TOKENS, RMS_NORM, QKV_GEMM, ATTENTION, MLP_GEMM, SAMPLE_TOKEN, KERNELS };
static const char *const site_names[SITES] = {"load_weights", "copy_prompt", "grow_cache", "allocate_logits"};
static const char *const kernel_names[KERNELS] = {"embed_tokens", "rms_norm", "qkv_gemm", "attention", "mlp_gemm", "sample_token"};

#define KERNEL(name) __attribute__((noinline, used)) void name(void) { __asm__ volatile(""); }
KERNEL(embed_tokens)
KERNEL(rms_norm)
KERNEL(qkv_gemm)
KERNEL(attention)
KERNEL(mlp_gemm)
KERNEL(sample_token)
static void (*const kernels[KERNELS])(void) = {embed_tokens, rms_norm, qkv_gemm, attention, mlp_gemm, sample_token};

typedef struct {
  void *pointer;
  size_t bytes;
  int site;
} Block;

static int layers;
static long seed;
static size_t width, vocabulary;
static char *host;
static Block pages[MAX_PAGES];
static int page_count, loaded;
static long frees, launches[KERNELS], copies, synchronisations;
static size_t copied;
static struct {
  long calls, failed;
  size_t bytes, alive;
} sites[SITES];

#define SITE __attribute__((noinline)) /* never inlined, so that every stack shows it */

static inline __attribute__((always_inline)) Block get(int site, size_t bytes) {
  Block block = {0, bytes, site};
  sites[site].calls++;
  if (cudaMalloc(&block.pointer, bytes)) {
    sites[site].failed++;
    block.pointer = 0;
  } else {
    sites[site].bytes += bytes;
    sites[site].alive += bytes;
  }
  return block;
}

static void put(Block block) {
  if (!block.pointer) return;
  cudaFree(block.pointer);
  frees++;
  sites[block.site].alive -= block.bytes;
}

static void copy(void *to, const void *from, size_t bytes, int kind) {
  cudaMemcpy(to, from, bytes, kind);
  copies++;
  copied += bytes;
}

static void launch(int kernel, unsigned grid, unsigned block, size_t shared) {
  cudaLaunchKernel((const void *)kernels[kernel], (dim3){grid, 1, 1}, (dim3){block, 1, 1}, 0, shared, 0);
  launches[kernel]++;
}

SITE int load_weights(void) {
  size_t bytes = 12 * width * width * 2;
  for (int layer = 0; layer < layers; layer++) {
    Block block = get(LOAD_WEIGHTS, bytes);
    if (!block.pointer) return 0;
    copy(block.pointer, host, bytes, TO_DEVICE);
  }
  return loaded = 1;
}

SITE Block copy_prompt(int tokens) {
  Block block = get(COPY_PROMPT, 4ul * tokens);
  if (block.pointer) copy(block.pointer, host, 4ul * tokens, TO_DEVICE);
  return block;
}

SITE int grow_cache(void) { /* keys and values of PAGE tokens, in all layers, two bytes per number */
  if (page_count == MAX_PAGES) return 0;
  pages[page_count] = get(GROW_CACHE, 2ul * layers * width * 2 * PAGE);
  return pages[page_count].pointer ? ++page_count : 0;
}

SITE Block allocate_logits(void) { return get(ALLOCATE_LOGITS, 4 * vocabulary); }

static void forward(int tokens) {
  launch(EMBED_TOKENS, tokens, 128, 0);
  for (int layer = 0; layer < layers; layer++) {
    launch(RMS_NORM, tokens, 128, 0);
    launch(QKV_GEMM, 3 * width / 64, 256, 16384);
    launch(ATTENTION, 8, 128, 8192);
    launch(RMS_NORM, tokens, 128, 0);
    launch(MLP_GEMM, 4 * width / 64, 256, 16384);
  }
}

/* The number of tokens that were generated: fewer if memory ran out. */
static int generate(int prompt, int tokens) {
  int generated = 0, forgetful = seed % 3; /* 0: the prompt's buffer, 1: every fourth logits, 2: the last page */
  Block input = copy_prompt(prompt);
  while (input.pointer && generated < tokens) {
    while ((page_count)*PAGE < prompt + generated)
      if (!grow_cache()) goto end;
    forward(generated ? 1 : prompt);
    Block logits = allocate_logits();
    if (!logits.pointer) break;
    launch(SAMPLE_TOKEN, 1, 1024, 4096);
    copy(host, logits.pointer, 4, TO_HOST);
    if (forgetful != 1 || generated % 4 != 3) put(logits);
    generated++;
  }
end:
  cudaDeviceSynchronize();
  synchronisations++;
  if (forgetful == 2 && page_count) page_count--;
  while (page_count) put(pages[--page_count]);
  if (forgetful != 0) put(input);
  return generated;
}

static void write_ledger(void) {
  long calls = 0, failed = 0, all = 0;
  size_t bytes = 0, alive = 0;
  for (int site = 0; site < SITES; site++) {
    calls += sites[site].calls, failed += sites[site].failed;
    bytes += sites[site].bytes, alive += sites[site].alive;
  }
  for (int kernel = 0; kernel < KERNELS; kernel++) all += launches[kernel];
  printf("{\"calls\": {\"cudaMalloc\": %ld, \"cudaFree\": %ld, \"cudaMemcpy\": %ld, \"cudaLaunchKernel\": %ld, ", calls, frees,
         copies, all);
  printf("\"cudaDeviceSynchronize\": %ld}, \"bytes\": {\"cudaMalloc\": %zu, \"cudaMemcpy\": %zu}, ", synchronisations, bytes,
         copied);
  printf("\"layers\": %d, \"width\": %zu, \"vocabulary\": %zu, ", layers, width, vocabulary);
  printf("\"failed\": %ld, \"alive_bytes\": %zu, \"kernels\": {", failed, alive);
  for (int kernel = 0; kernel < KERNELS; kernel++)
    printf("%s\"%s\": %ld", kernel ? ", " : "", kernel_names[kernel], launches[kernel]);
  printf("}, \"sites\": {");
  for (int site = 0; site < SITES; site++)
    printf("%s\"%s\": {\"calls\": %ld, \"failed\": %ld, \"bytes\": %zu, \"alive_bytes\": %zu}", site ? ", " : "",
           site_names[site], sites[site].calls, sites[site].failed, sites[site].bytes, sites[site].alive);
  printf("}}\n");
}

int main(int count, char **words) {
  char line[128];
  int prompt, tokens;
  layers = count > 1 ? atoi(words[1]) : 6;
  seed = count > 2 ? atol(words[2]) : 1;
  width = 256 + 64 * (seed % 4);
  vocabulary = 32000 + 1000 * (seed % 7);
  host = calloc(1, 12 * width * width * 2 + 4 * MAX_PAGES * PAGE);
  while (fgets(line, sizeof line, stdin)) {
    if (sscanf(line, "request %d %d", &prompt, &tokens) == 2) {
      int generated = loaded || load_weights() ? generate(prompt, tokens) : 0;
      printf("{\"tokens\": %d, \"error\": %s}\n", generated, generated == tokens ? "null" : "\"out of memory\"");
    } else if (!strncmp(line, "load", 4)) {
      printf("{\"error\": %s}\n", loaded || load_weights() ? "null" : "\"out of memory\"");
    } else {
      write_ledger();
    }
    fflush(stdout);
  }
  return 0;
}
