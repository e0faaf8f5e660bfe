#include "kernels/cuda/cuda_check.h"
#include "kernels/cuda/heads.cuh"
#include "kernels/cuda/prefill/prefill.h"
#include "kernels/cuda/prefill/prefill_attention.h"
#include "kernels/cuda/prefill/prefill_product.cuh"

namespace knap {
namespace {

constexpr int kRowWarps = 8;  // of the kernels in this file

// The item of the calling warp, of a grid of blocks of kRowWarps.
__device__ inline int warp_item() {
    return static_cast<int>(blockIdx.x) * kRowWarps + static_cast<int>(threadIdx.x) / 32;
}

__device__ inline int warp_lane() {
    return static_cast<int>(threadIdx.x) % 32;
}

unsigned blocks_for(std::size_t n_items, int n_at_once) {
    const auto n = static_cast<std::size_t>(n_at_once);
    return static_cast<unsigned>((n_items + n - 1) / n);
}

// Tokens, or streams that are there, as inputs of the first product: a warp has 32 of them.
__global__ void __launch_bounds__(32 * kRowWarps)
    begin_kernel(const __grid_constant__ CudaShape shape,
                 const __grid_constant__ CudaBuffers buffers,
                 const __grid_constant__ CudaPhase phase,
                 const CudaRow* rows,
                 int n_rows,
                 int stride) {
    const int n_blocks = shape.n_embd / 32;
    const int column = warp_item() / n_blocks;
    const int first = warp_item() % n_blocks * 32;
    const int lane = warp_lane();
    if (column >= n_rows) {
        return;
    }
    float* at = buffers.stream + static_cast<std::size_t>(column) * shape.n_embd + first + lane;
    if (phase.op == CudaPhase::Op::embed) {
        const int token = __ldg(&rows[column].token);
        const CudaMatrix& table = shape.embedding;
        const std::size_t strip_bytes =
            static_cast<std::size_t>(table.n_units) *
            static_cast<std::size_t>(strip_unit(static_cast<ggml_type>(table.type)).n_bytes);
        *at = __fmul_rn(
            weight_at(table.strips + static_cast<std::size_t>(token / kStripRows) * strip_bytes,
                      table.type, token % kStripRows, first + lane),
            shape.embedding_scale);
    }
    stream_writer(buffers, phase, stride, shape.n_embd).write(*at, first, column, lane);
}

// Keys and values of all rows to the cache: a warp has one of a KV head.
__global__ void __launch_bounds__(32 * kRowWarps)
    store_kernel(const __grid_constant__ CudaShape shape,
                 const __grid_constant__ CudaPassData pass,
                 const float* heads,
                 const float* head_factors,
                 int index) {
    const int row = warp_item() / shape.n_kv_heads;
    if (row >= pass.n_rows) {
        return;
    }
    const auto width = static_cast<std::size_t>(shape.n_q() + 2 * shape.n_kv());
    const CudaLayer& layer = shape.layers[index];
    const int kv_head = warp_item() % shape.n_kv_heads;
    const HeadsWork work(shape, pass, layer, HeadKind::key, pass.turns, head_factors);
    store_any_row(shape, layer, heads + static_cast<std::size_t>(row) * width,
                  work.of(shape, row, row, kv_head), kv_head, __ldg(&pass.rows[row].stored),
                  warp_lane());
}

// The factors of norms of whole rows of queries and of keys: a block has one.
__global__ void __launch_bounds__(32 * kRowWarps)
    head_factor_kernel(const __grid_constant__ CudaShape shape,
                       const __grid_constant__ CudaBuffers buffers) {
    __shared__ float sums[kRowWarps];
    give_head_factor(shape, buffers, static_cast<int>(blockIdx.x) / 2,
                     static_cast<int>(blockIdx.x) % 2, sums, static_cast<int>(threadIdx.x),
                     [] { __syncthreads(); });
}

// Adds the results of a module to the stream, after the norm that follows it.
__global__ void __launch_bounds__(32 * kRowWarps)
    add_results_kernel(const __grid_constant__ CudaShape shape,
                       const __grid_constant__ CudaBuffers buffers,
                       const __grid_constant__ CudaPhase phase,
                       int n_rows,
                       int stride) {
    const int n_blocks = shape.n_embd / 32;
    const int column = warp_item() / n_blocks;
    const int channel = warp_item() % n_blocks * 32 + warp_lane();
    if (column >= n_rows) {
        return;
    }
    const std::size_t at = static_cast<std::size_t>(column) * shape.n_embd + channel;
    const float result =
        normed_result(buffers.results[at], buffers.factors[column],
                      shape.layers[phase.layer].post_norms[phase.group], channel, shape);
    const float x = __fadd_rn(buffers.stream[at], result);
    buffers.stream[at] = x;
    stream_writer(buffers, phase, stride, shape.n_embd)
        .write(x, channel - warp_lane(), column, warp_lane());
}

// The factors of a norm: a warp has a row.
__global__ void __launch_bounds__(32 * kRowWarps) factor_kernel(
    const float* squares, float* factors, int n_rows, int stride, int n_embd, float eps) {
    const int row = warp_item();
    if (row >= n_rows) {
        return;
    }
    NormSquares norm;
    norm.load(squares, stride, row, n_embd, warp_lane());
    const float factor = norm.factor(n_embd, eps);
    if (warp_lane() == 0) {
        factors[row] = factor;
    }
}

// Columns of inputs as a product of many columns wants them.
struct ColumnsFrom {
    const int* rows_of;  // null: column i is row i
    int n_columns;
    int stride;  // columns in memory, of what is written

    __device__ int row(int column) const {
        return rows_of != nullptr ? __ldg(rows_of + column) : column;
    }
};

// Floats times factors, rounded to 16 bits as stage_halves() does: a thread has two inputs.
__global__ void round_kernel(const float* floats,
                             const float* factors,
                             const ColumnsFrom columns,
                             int n_in,
                             bool is_bf16,
                             std::uint32_t* halves) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    const int n_pairs = n_in / 2;
    const int column = i / n_pairs;
    const int pair = i % n_pairs;
    if (column >= columns.n_columns) {
        return;
    }
    const int row = columns.row(column);
    const float factor = factors != nullptr ? __ldg(factors + row) : 1.0f;
    const float2 x =
        __ldg(reinterpret_cast<const float2*>(floats + static_cast<std::size_t>(row) *
                                                           static_cast<std::size_t>(n_in)) +
              pair);
    std::uint32_t bits;
    if (is_bf16) {
        const __nv_bfloat162 both = __floats2bfloat162_rn(x.x * factor, x.y * factor);
        bits = *reinterpret_cast<const std::uint32_t*>(&both);
    } else {
        const __half2 both = __floats2half2_rn(x.x * factor, x.y * factor);
        bits = *reinterpret_cast<const std::uint32_t*>(&both);
    }
    const std::size_t at =
        (static_cast<std::size_t>(pair / 32) * static_cast<std::size_t>(columns.stride) +
         static_cast<std::size_t>(column)) *
        32;
    halves[at + static_cast<std::size_t>(halves_place(pair % 32, column))] = bits;
}

// Some columns of int8 inputs, side by side: a thread copies a quarter of the codes of 64 inputs,
// or one of their two scales.
__global__ void gather_kernel(const uint4* codes,
                              const float2* scales,
                              int stride,
                              const ColumnsFrom columns,
                              int n_64,
                              uint4* to_codes,
                              float2* to_scales) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    const int piece = i % 6;
    const int column = i / 6 % columns.n_columns;
    const auto unit = static_cast<std::size_t>(i / 6 / columns.n_columns);
    if (unit >= static_cast<std::size_t>(n_64)) {
        return;
    }
    const auto row = static_cast<std::size_t>(columns.row(column));
    const auto to = static_cast<std::size_t>(column);
    const auto from_stride = static_cast<std::size_t>(stride);
    const auto to_stride = static_cast<std::size_t>(columns.stride);
    if (piece < 4) {
        const auto at = static_cast<std::size_t>(piece);
        to_codes[(unit * to_stride + to) * 4 + at] =
            __ldg(codes + (unit * from_stride + row) * 4 + at);
    } else {
        const std::size_t block = 2 * unit + static_cast<std::size_t>(piece - 4);
        to_scales[block * to_stride + to] = __ldg(scales + block * from_stride + row);
    }
}

constexpr int kChooseWarps = 32;

// The best token of a row, by one block. Logits are merged in the order of the step kernel with
// `n_parts` blocks: a warp takes what one of them would.
__global__ void __launch_bounds__(32 * kChooseWarps) choose_kernel(
    const float* logits, int n_vocab, int n_parts, std::int32_t* choices, float* probabilities) {
    extern __shared__ float4 parts[];  // [n_parts]
    const float* row =
        logits + static_cast<std::size_t>(blockIdx.x) * static_cast<std::size_t>(n_vocab);
    const int lane = warp_lane();
    for (int part = static_cast<int>(threadIdx.x) / 32; part < n_parts; part += kChooseWarps) {
        BestToken best;
        for (int first = part * 32; first < n_vocab; first += n_parts * 32) {
            if (first + lane < n_vocab) {
                best.add(__ldg(row + first + lane), first + lane);
            }
        }
        best.merge_lanes();
        if (lane == 0) {
            parts[part] = make_float4(best.value, __int_as_float(best.token), best.weight, 0);
        }
    }
    __syncthreads();
    if (threadIdx.x >= 32) {
        return;
    }
    BestToken best;
    for (int i = lane; i < n_parts; i += 32) {
        best.merge({parts[i].x, __float_as_int(parts[i].y), parts[i].z});
    }
    best.merge_lanes();
    if (lane == 0) {
        choices[blockIdx.x] = best.token;
        probabilities[blockIdx.x] = 1.0f / best.weight;
    }
}

// A pass under way.
struct Prefill {
    const CudaDevice& device;
    const CudaShape& shape;
    const CudaBuffers& buffers;
    const CudaPassData& pass;
    const PrefillPlan& plan;
    cudaStream_t stream;
    int stride;

    void run(const CudaPhase& phase) const {
        switch (phase.op) {
            case CudaPhase::Op::embed:
            case CudaPhase::Op::take:
                begin(phase);
                break;
            case CudaPhase::Op::store:
                store(phase);
                break;
            case CudaPhase::Op::attend:
                store(phase);
                attend(phase);
                break;
            case CudaPhase::Op::norm_heads:
                norm_heads();
                break;
            case CudaPhase::Op::norm_result:
                add_results(phase);
                break;
            case CudaPhase::Op::capture:
                capture(phase);
                break;
            case CudaPhase::Op::choose:
                choose();
                break;
            case CudaPhase::Op::head:
                if (pass.n_logit_rows > 0) {
                    multiply(phase, pass.logit_rows, pass.n_logit_rows);
                }
                break;
            default:
                multiply(phase, nullptr, pass.n_rows);
                break;
        }
    }

    std::size_t rows_times(int n) const {
        return static_cast<std::size_t>(pass.n_rows) * static_cast<std::size_t>(n);
    }

    void begin(const CudaPhase& phase) const {
        begin_kernel<<<blocks_for(rows_times(shape.n_embd / 32), kRowWarps), 32 * kRowWarps, 0,
                       stream>>>(shape, buffers, phase, pass.rows, pass.n_rows, stride);
        check_cuda(cudaGetLastError(), "starting a pass");
    }

    void store(const CudaPhase& phase) const {
        store_kernel<<<blocks_for(rows_times(shape.n_kv_heads), kRowWarps), 32 * kRowWarps, 0,
                       stream>>>(shape, pass, buffers.heads, buffers.head_factors, phase.layer);
        check_cuda(cudaGetLastError(), "storing keys and values");
    }

    void norm_heads() const {
        head_factor_kernel<<<static_cast<unsigned>(2 * pass.n_rows), 32 * kRowWarps, 0, stream>>>(
            shape, buffers);
        check_cuda(cudaGetLastError(), "norms of queries and keys");
    }

    void add_results(const CudaPhase& phase) const {
        find_factors(buffers.result_squares);
        add_results_kernel<<<blocks_for(rows_times(shape.n_embd / 32), kRowWarps), 32 * kRowWarps,
                             0, stream>>>(shape, buffers, phase, pass.n_rows, stride);
        check_cuda(cudaGetLastError(), "a norm behind a module");
    }

    void attend(const CudaPhase& phase) const {
        start_attention(device,
                        {.shape = shape,
                         .buffers = buffers,
                         .pass = pass,
                         .layer = phase.layer,
                         .group = phase.group,
                         .gives_halves = phase.gives_halves,
                         .stride = stride},
                        plan.blocks[static_cast<std::size_t>(phase.group)], stream);
    }

    void capture(const CudaPhase& phase) const {
        const std::size_t n = rows_times(shape.n_embd);
        check_cuda(
            cudaMemcpyAsync(buffers.captures + static_cast<std::size_t>(phase.group) * n,
                            buffers.stream, n * sizeof(float), cudaMemcpyDeviceToDevice, stream),
            "a capture");
    }

    void choose() const {
        if (pass.n_logit_rows == 0) {
            return;
        }
        const int n_parts = device.n_processors;
        choose_kernel<<<static_cast<unsigned>(pass.n_logit_rows), 32 * kChooseWarps,
                        static_cast<std::size_t>(n_parts) * sizeof(float4), stream>>>(
            buffers.logits, shape.n_vocab, n_parts, buffers.choices, buffers.probabilities);
        check_cuda(cudaGetLastError(), "choosing tokens");
    }

    // The product of a phase, for all rows or some. Parts of different types take a kernel each.
    void multiply(const CudaPhase& phase, const int* rows_of, int n_columns) const {
        const ColumnsFrom columns{rows_of, n_columns,
                                  rows_of != nullptr ? prefill_stride(n_columns) : stride};
        const int which = phase.ends_module() ? 1 : 0;
        if (phase.is_normed) {
            find_factors(buffers.squares);
        }
        const ProductArguments common{.shape = shape,
                                      .buffers = buffers,
                                      .phase = phase,
                                      .factors = phase.is_normed ? buffers.factors : nullptr,
                                      .rows_of = rows_of,
                                      .stride = columns.stride,
                                      .n_columns = n_columns};
        const std::size_t n_parts = phase.op == CudaPhase::Op::heads ? 3 : 1;
        for (std::size_t i = 0; i < n_parts; ++i) {
            const CudaMatrix& part = phase.parts[i];
            const auto is_same = [&](const CudaMatrix& other) { return other.type == part.type; };
            if (part.n_strips == 0 || std::any_of(phase.parts, phase.parts + i, is_same)) {
                continue;
            }
            ProductArguments args = common;
            const auto type = static_cast<ggml_type>(part.type);
            if (takes_halves(type)) {
                round_inputs(part, which, columns, args);
            } else {
                find_codes(part, which, columns, args);
            }
            start_product(device, args, type, stream);
        }
    }

    void find_factors(const float* squares) const {
        factor_kernel<<<blocks_for(rows_times(1), kRowWarps), 32 * kRowWarps, 0, stream>>>(
            squares, buffers.factors, pass.n_rows, stride, shape.n_embd, shape.rms_eps);
        check_cuda(cudaGetLastError(), "a norm");
    }

    static int inputs_of_part(const CudaMatrix& part) {
        return part.n_units * strip_unit(static_cast<ggml_type>(part.type)).n_inputs;
    }

    // Sixteen-bit inputs have the norm's factor in them.
    void round_inputs(const CudaMatrix& part,
                      int which,
                      const ColumnsFrom& columns,
                      ProductArguments& args) const {
        const int n_in = inputs_of_part(part);
        const auto n =
            static_cast<std::size_t>(columns.n_columns) * static_cast<std::size_t>(n_in / 2);
        round_kernel<<<blocks_for(n, 256), 256, 0, stream>>>(
            buffers.floats[which], args.factors, columns, n_in, part.type == GGML_TYPE_BF16,
            reinterpret_cast<std::uint32_t*>(buffers.halves));
        check_cuda(cudaGetLastError(), "rounding inputs");
        args.inputs = reinterpret_cast<const std::uint8_t*>(buffers.halves);
        args.factors = nullptr;
    }

    // Codes of some rows go to the other buffer, whose inputs have served.
    void find_codes(const CudaMatrix& part,
                    int which,
                    const ColumnsFrom& columns,
                    ProductArguments& args) const {
        args.inputs = reinterpret_cast<const std::uint8_t*>(buffers.codes[which]);
        args.scales = buffers.scales[which];
        if (columns.rows_of == nullptr) {
            return;
        }
        const int n_64 = inputs_of_part(part) / 64;
        const auto n =
            static_cast<std::size_t>(n_64) * static_cast<std::size_t>(columns.n_columns) * 6;
        const int other = 1 - which;
        gather_kernel<<<blocks_for(n, 256), 256, 0, stream>>>(
            reinterpret_cast<const uint4*>(buffers.codes[which]),
            reinterpret_cast<const float2*>(buffers.scales[which]), stride, columns, n_64,
            reinterpret_cast<uint4*>(buffers.codes[other]),
            reinterpret_cast<float2*>(buffers.scales[other]));
        check_cuda(cudaGetLastError(), "gathering inputs");
        args.inputs = reinterpret_cast<const std::uint8_t*>(buffers.codes[other]);
        args.scales = buffers.scales[other];
    }
};

}  // namespace

void run_prefill(const CudaDevice& device,
                 const CudaShape& shape,
                 const CudaBuffers& buffers,
                 const CudaPassData& pass,
                 const PrefillPlan& plan,
                 const CudaStream& stream) {
    const Prefill prefill{.device = device,
                          .shape = shape,
                          .buffers = buffers,
                          .pass = pass,
                          .plan = plan,
                          .stream = static_cast<cudaStream_t>(stream.handle()),
                          .stride = prefill_stride(pass.n_rows)};
    for (const CudaPhase& phase : plan.phases) {
        prefill.run(phase);
    }
}

}  // namespace knap
