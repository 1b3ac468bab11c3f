// Convolution as a matrix product on the tensor cores of compute capability 9.0.
//
// A block computes 256 to 512 neighbouring output positions of one picture (and one depth) at once
// for up to 144 output channels. The input that these positions see, with its margin ("halo"), lies
// in shared memory once per 16 to 64 channels, and every tap of the kernel reads it through a
// matrix descriptor shifted by a few pixels; only weights stream in per tap. A convolution that
// steps by 2 in x and y keeps the four parities of the input's columns and rows apart, so that
// neighbouring outputs still read neighbouring pixels.
//
// Twelve warps: four bring data in (one thread for the input, one for weights), two groups of four
// multiply. The generated part provides the constants of C (see halo_conv.cpp), nc_mma for its
// width, and what to do with the sums.
struct __align__(64) nc_tensor_map { unsigned long long words[16]; };

struct nc_tile {
  int outputs;  // which group of output channels
  int x, y;     // in tiles
  int z, picture;
};

__device__ __forceinline__ unsigned nc_shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
__device__ __forceinline__ void nc_barrier_init(unsigned barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void nc_barrier_expect(unsigned barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void nc_barrier_arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void nc_barrier_wait(unsigned barrier, unsigned parity) {
  unsigned done = 0;
  while (done == 0) {
    asm volatile(
        "{\n.reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  }
}
__device__ __forceinline__ void nc_load_box(unsigned target, const nc_tensor_map* map,
                                            unsigned barrier, int c, int x, int y, int z, int n) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(target),
      "l"(map), "r"(barrier), "r"(c), "r"(x), "r"(y), "r"(z), "r"(n)
      : "memory");
}
__device__ __forceinline__ void nc_load_bytes(unsigned target, const void* source, unsigned bytes,
                                              unsigned barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(target),
      "l"(__cvta_generic_to_global(source)), "r"(bytes), "r"(barrier)
      : "memory");
}
__device__ __forceinline__ void nc_mma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void nc_mma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kPending> __device__ __forceinline__ void nc_mma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// Where a ring of buffers stands: index of the buffer, and the parity of its current round.
template <int kBuffers> struct nc_ring {
  int at = 0;
  unsigned parity = 0;
  __device__ __forceinline__ void next() {
    if (++at == kBuffers) {
      at = 0;
      parity ^= 1;
    }
  }
};

template <class C> struct nc_conv {
  // Shared memory: barriers first, then both inputs, then the ring of weights.
  static constexpr int kInputsAt = 1024;
  static constexpr int kWeightsAt = kInputsAt + 2 * C::kInputBytes;

  unsigned base;

  __device__ unsigned input_full(int i) const { return base + 8 * i; }
  __device__ unsigned input_empty(int i) const { return base + 16 + 8 * i; }
  __device__ unsigned second_group() const { return base + 32; }
  __device__ unsigned weights_full(int i) const { return base + 40 + 16 * i; }
  __device__ unsigned weights_empty(int i) const { return base + 48 + 16 * i; }

  __device__ static nc_tile tile_of(int index) {
    nc_tile tile;
    tile.outputs = index % C::kOutputTiles;
    index /= C::kOutputTiles;
    tile.x = index % C::kTilesX;
    index /= C::kTilesX;
    tile.y = index % C::kTilesY;
    index /= C::kTilesY;
    tile.z = index % C::kDepth;
    tile.picture = index / C::kDepth;
    return tile;
  }
  // Taps in depth that meet the picture.
  __device__ static int first_depth(const nc_tile& tile) { return max(0, C::kPadZ - tile.z); }
  __device__ static int end_depth(const nc_tile& tile) {
    return min(C::kTapsZ, C::kInputDepth + C::kPadZ - tile.z);
  }

  __device__ void load_inputs(const nc_tensor_map* map) {
    nc_ring<2> ring;
    for (int index = blockIdx.x; index < C::kTiles; index += gridDim.x) {
      const nc_tile tile = tile_of(index);
      const int x = tile.x * C::kTileWidth * C::kStep - C::kPadX;
      const int y = tile.y * C::kTileHeight * C::kStep - C::kPadY;
      for (int dz = first_depth(tile); dz < end_depth(tile); ++dz) {
        for (int chunk = 0; chunk < C::kChunks; ++chunk) {
          nc_barrier_wait(input_empty(ring.at), ring.parity ^ 1);
          const unsigned full = input_full(ring.at);
          nc_barrier_expect(full, C::kStep * C::kStep * C::kBoxBytes);
          const unsigned target = base + kInputsAt + ring.at * C::kInputBytes;
          for (int part = 0; part < C::kStep * C::kStep; ++part) {
            nc_load_box(target + part * C::kPartBytes, map, full, chunk * (C::kRowBytes / 2),
                        x + part % C::kStep, y + part / C::kStep, tile.z + dz - C::kPadZ,
                        tile.picture);
          }
          ring.next();
        }
      }
    }
  }

  __device__ void load_weights(const unsigned char* weights) {
    nc_ring<C::kStages> ring;
    for (int index = blockIdx.x; index < C::kTiles; index += gridDim.x) {
      const nc_tile tile = tile_of(index);
      const int* taps = C::taps(tile.outputs);
      const int stages = C::kChunks * (taps[1] * taps[3] / C::kTapsPerStage);  // of one depth
      const int first = first_depth(tile);
      const unsigned char* source =
          weights + static_cast<long long>(taps[4] + first * stages) * C::kStageBytes;
      for (int i = (end_depth(tile) - first) * stages; i > 0; --i) {
        nc_barrier_wait(weights_empty(ring.at), ring.parity ^ 1);
        nc_barrier_expect(weights_full(ring.at), C::kStageBytes);
        nc_load_bytes(base + kWeightsAt + ring.at * C::kStageBytes, source, C::kStageBytes,
                      weights_full(ring.at));
        source += C::kStageBytes;
        ring.next();
      }
    }
  }

  // The products of one stage's taps, from tap `tap` on.
  __device__ __forceinline__ void multiply(float (&sums)[C::kParts][C::kWidth / 2],
                                           unsigned long long a, unsigned long long b, int tap,
                                           const int* taps, int steps, int keep) const {
#pragma unroll
    for (int t = 0; t < C::kTapsPerStage; ++t) {
      const int row = taps[0] + (tap + t) / taps[3];
      const int column = taps[2] + (tap + t) % taps[3];
      const int part = row % C::kStep * C::kStep + column % C::kStep;
      const unsigned shift = part * C::kPartBytes +
                             (row / C::kStep * C::kHaloWidth + column / C::kStep) * C::kRowBytes;
#pragma unroll
      for (int k = 0; k < C::kRowBytes / 32; ++k) {
        if (k < steps) {
#pragma unroll
          for (int m = 0; m < C::kParts; ++m) {
            const unsigned place =
                shift + k * 32 +
                (m / C::kPartsX * 8 * C::kHaloWidth + m % C::kPartsX * 8) * C::kRowBytes;
            nc_mma(sums[m], a + (place >> 4), b + ((t * C::kWidth * C::kRowBytes + k * 32) >> 4),
                   keep | t | k);
          }
        }
      }
    }
  }

  template <class Store> __device__ void compute(int group, const Store& store) {
    nc_ring<2> inputs;
    nc_ring<C::kStages> weights;
    const bool speaks = threadIdx.x % 32 == 0;
    const unsigned rows = group * (C::kParts / C::kPartsX) * 8 * C::kHaloWidth * C::kRowBytes;
    for (int index = blockIdx.x; index < C::kTiles; index += gridDim.x) {
      const nc_tile tile = tile_of(index);
      const int* taps = C::taps(tile.outputs);
      const int stages = taps[1] * taps[3] / C::kTapsPerStage;
      float sums[C::kParts][C::kWidth / 2];
      int keep = 0;
      // The second group stays some stages behind, so that one multiplies while the other stores.
      int ahead = index == blockIdx.x && group == 0 ? C::kAhead : 0;
      if (C::kAhead > 0 && index == blockIdx.x && group == 1) nc_barrier_wait(second_group(), 0);
      int used_weights = -1;  // buffers whose products are still under way
      int used_input = -1;
      for (int dz = first_depth(tile); dz < end_depth(tile); ++dz) {
        for (int chunk = 0; chunk < C::kChunks; ++chunk) {
          nc_barrier_wait(input_full(inputs.at), inputs.parity);
          const unsigned input = base + kInputsAt + inputs.at * C::kInputBytes + rows;
          const unsigned long long a = C::kInputForm | (input >> 4);
          const int steps = chunk == C::kChunks - 1 ? C::kLastSteps : C::kRowBytes / 32;
          for (int stage = 0; stage < stages; ++stage) {
            nc_barrier_wait(weights_full(weights.at), weights.parity);
            const unsigned long long b =
                C::kWeightForm | ((base + kWeightsAt + weights.at * C::kStageBytes) >> 4);
            nc_mma_fence();
            multiply(sums, a, b, stage * C::kTapsPerStage, taps, steps, keep);
            nc_mma_commit();
            keep = 1;
            nc_mma_wait<1>();
            if (speaks && used_weights >= 0) nc_barrier_arrive(weights_empty(used_weights));
            if (speaks && stage == 0 && used_input >= 0) nc_barrier_arrive(input_empty(used_input));
            if (ahead > 0 && --ahead == 0 && speaks) nc_barrier_arrive(second_group());
            used_weights = weights.at;
            weights.next();
          }
          used_input = inputs.at;
          inputs.next();
        }
      }
      nc_mma_wait<0>();
      if (speaks) {
        nc_barrier_arrive(weights_empty(used_weights));
        nc_barrier_arrive(input_empty(used_input));
      }
      store(tile, sums);
    }
  }

  template <class Store>
  __device__ void run(const nc_tensor_map* map, const unsigned char* weights, const Store& store) {
    extern __shared__ unsigned char nc_memory[];
    base = (nc_shared_address(nc_memory) + 1023) / 1024 * 1024;
    if (threadIdx.x == 0) {
      nc_barrier_init(second_group(), 4);
      for (int i = 0; i < 2; ++i) {
        nc_barrier_init(input_full(i), 1);
        nc_barrier_init(input_empty(i), 8);
      }
      for (int i = 0; i < C::kStages; ++i) {
        nc_barrier_init(weights_full(i), 1);
        nc_barrier_init(weights_empty(i), 8);
      }
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x < 128) {
      asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
      if (threadIdx.x == 0) load_inputs(map);
      if (threadIdx.x == 32) load_weights(weights);
    } else {
      asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
      compute(static_cast<int>(threadIdx.x) / 128 - 1, store);
    }
  }
};

// Position of the sums that a thread holds: part m (64 positions, 8 x 8) of its group, half h.
template <class C> __device__ __forceinline__ int nc_conv_x(const nc_tile& tile, int m) {
  return tile.x * C::kTileWidth + m % C::kPartsX * 8 + threadIdx.x % 32 / 4;
}
template <class C> __device__ __forceinline__ int nc_conv_y(const nc_tile& tile, int m, int h) {
  const int group = static_cast<int>(threadIdx.x) / 128 - 1;
  return tile.y * C::kTileHeight + (group * (C::kParts / C::kPartsX) + m / C::kPartsX) * 8 +
         threadIdx.x % 128 / 32 * 2 + h;
}
