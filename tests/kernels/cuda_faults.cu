// Faults that a Triton kernel cannot have: built by the tests with nvcc, called by sanitizer_faults.py.

__global__ void shared_race(int *out) {
    __shared__ int cells[64];
    cells[threadIdx.x] = threadIdx.x;
    out[threadIdx.x % 16] = cells[(threadIdx.x + 33) % 64];  // planted: race
}

__global__ void divergent_barrier(int *out) {
    if (threadIdx.x < 16)
        __syncthreads();  // planted: barrier
    out[threadIdx.x % 16] = threadIdx.x;
}

extern "C" void launch_shared_race(int *out) { shared_race<<<1, 64>>>(out); }

extern "C" void launch_divergent_barrier(int *out) { divergent_barrier<<<1, 32>>>(out); }
