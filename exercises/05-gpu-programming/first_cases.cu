// The twelve kernels of 5.0 at one size: how each is launched, and what its result must be. Part of harness.cu.

// Whole numbers on the device.
struct Integers {
  int* device = nullptr;
  Integers(size_t n, const std::function<int(size_t)>& value) {
    std::vector<int> host(n);
    for (size_t i = 0; i < n; ++i) host[i] = value(i);
    TRY(cudaMalloc(&device, n * sizeof(int)));
    TRY(cudaMemcpy(device, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  }
};

Case prepare(const char* kernel, int n, int block, int) {
  const int blocks = blocks_of(n, block);
  const int rows = std::max(1, int(std::sqrt(double(n)))), columns = n / rows;  // about as many rows as columns
  const size_t numbers = size_t(rows) * columns;
  const dim3 grid(blocks_of(columns, 16), blocks_of(rows, 16)), threads(16, 16);
  const int in_grid = grid.x * grid.y;
  const auto zero = [](size_t) { return 0.0f; };
  const auto is = [=](const char* name) { return !strcmp(kernel, name); };

  if (is("map") || is("guard")) {
    Array *in = new Array(n, small), *out = new Array(n);
    const bool guarded = is("guard");
    auto launch = [=] {
      if (guarded) guard<<<blocks, block>>>(in->device, out->device, n);
      else map<<<1, n>>>(in->device, out->device);
    };
    return {guarded ? blocks : 1, launch, out, make_list(n, [](size_t i) { return small(i) + 10.0f; })};
  }
  if (is("two_dimensions") || is("transpose")) {
    Array *in = new Array(numbers, place), *out = new Array(numbers);
    const bool turned = is("transpose");
    auto launch = [=] {
      if (turned) transpose<<<grid, threads>>>(in->device, out->device, rows, columns);
      else two_dimensions<<<grid, threads>>>(in->device, out->device, rows, columns);
    };
    auto right = [=](size_t i) { return turned ? place(i % rows * columns + i / rows) : place(i) + 10.0f; };
    return {in_grid, launch, out, make_list(numbers, right), turned ? rows : columns};
  }
  if (is("broadcast")) {
    Array *a = new Array(rows, place), *b = new Array(columns, [](size_t i) { return 1000.0f * i; }), *out = new Array(numbers);
    auto launch = [=] { broadcast<<<grid, threads>>>(a->device, b->device, out->device, rows, columns); };
    auto right = [=](size_t i) { return place(i / columns) + 1000.0f * (i % columns); };
    return {in_grid, launch, out, make_list(numbers, right), columns};
  }
  if (is("halo") || is("scan")) {
    Array *in = new Array(n, small), *out = new Array(n);
    const bool adds_neighbours = is("halo");
    auto launch = [=] {
      if (adds_neighbours) halo<<<blocks, block>>>(in->device, out->device, n);
      else scan<<<blocks, block>>>(in->device, out->device, n);
    };
    auto right = [=](size_t i) {
      float sum = 0.0f;
      const size_t first = adds_neighbours ? (i > 0 ? i - 1 : 0) : i / block * block, last = adds_neighbours ? i + 1 : i;
      for (size_t k = first; k <= last && k < size_t(n); ++k) sum += small(k);
      return sum;
    };
    return {blocks, launch, out, make_list(n, right)};
  }
  if (is("pooling")) {
    const int windows = blocks_of(n, 4);
    Array *in = new Array(n, mostly_negative), *out = new Array(windows);
    auto launch = [=] { pooling<<<blocks_of(windows, block), block>>>(in->device, out->device, n); };
    auto right = [=](size_t i) {
      float largest = mostly_negative(4 * i);
      for (size_t k = 4 * i + 1; k < 4 * i + 4 && k < size_t(n); ++k) largest = std::max(largest, mostly_negative(k));
      return largest;
    };
    return {blocks_of(windows, block), launch, out, make_list(windows, right)};
  }
  if (is("axis_sum")) {
    Array *in = new Array(numbers, small), *out = new Array(columns);
    auto launch = [=] { axis_sum<<<blocks_of(columns, block), block>>>(in->device, out->device, rows, columns); };
    auto right = [=](size_t c) {
      float sum = 0.0f;
      for (int r = 0; r < rows; ++r) sum += small(r * columns + c);
      return sum;
    };
    return {blocks_of(columns, block), launch, out, make_list(columns, right)};
  }
  if (is("histogram")) {
    const size_t bins = 16;
    const auto bin = [](size_t i) { return int(i * i * 7 % 31 % 16); };
    Integers* in = new Integers(n, bin);
    Array* count = new Array(bins, zero);
    auto launch = [=] { histogram<<<blocks, block>>>(in->device, count->device, n); };
    std::vector<float> right(bins);
    for (int i = 0; i < n; ++i) right[bin(i)] += 1.0f;
    return {blocks, launch, count, right};
  }
  if (is("embedding")) {
    const int width = 100, words = 50, tokens = blocks_of(n, width), few = 32;  // threads: fewer than the numbers of a row
    const auto word = [=](size_t i) { return int((i * 17 + 3) % words); };
    Integers* token = new Integers(tokens, word);
    Array *table = new Array(words * width, place), *out = new Array(tokens * width);
    auto launch = [=] { embedding<<<tokens, few>>>(token->device, table->device, out->device, width); };
    return {tokens, launch, out, make_list(tokens * width, [=](size_t i) { return place(word(i / width) * width + i % width); }), width};
  }
  if (is("dot")) {
    Array *a = new Array(n, small), *b = new Array(n, mostly_negative), *sum = new Array(1, zero);
    auto launch = [=] { dot<<<blocks, block>>>(a->device, b->device, sum->device, n); };
    return {blocks, launch, sum, total(n, [](size_t i) { return double(small(i)) * mostly_negative(i); })};
  }
  refuse(kernel);
}
