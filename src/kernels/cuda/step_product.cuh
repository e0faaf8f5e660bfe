// Products of the step kernel. The eight warps of a block share the units of a strip: warp w takes
// units w, w + 8, ... Their sums are added in the order of warps. This order is the same for any
// number of columns.
#pragma once

#include "kernels/cuda/step_inputs.cuh"

namespace knap {

// The copying warp's place: which slot is next, and which copies may still be under way.
struct WeightCopies {
    RingPosition next{};
    RingPosition landing{};  // the oldest that may be under way
    int n_under_way = 0;     // from there on
    bool is_first_round = true;

    // Returns false when the chain has ended: nobody frees slots any more.
    __device__ bool copy(const StepContext& c, const std::uint8_t* from, int n_bytes) {
        const StepMemory& memory = c.args.memory;
        while (!is_first_round && !has_completed(c.empty(next.slot), next.parity ^ 1)) {
            if (*c.is_over() != 0) {
                return false;
            }
        }
        if (n_under_way == memory.max_copies) {
            wait_for(c.full(landing.slot), landing.parity);
            landing.advance(memory.n_slots);
            --n_under_way;
        }
        __syncwarp();
        copy_weights(c.slot(next.slot), from, n_bytes, c.full(next.slot), c.lane);
        ++n_under_way;
        next.advance(memory.n_slots);
        is_first_round = is_first_round && next.slot != 0;
        return true;
    }

    // Shared memory must not be given up while copies to it are under way.
    __device__ void finish(const StepContext& c) {
        for (; n_under_way > 0; --n_under_way) {
            wait_for(c.full(landing.slot), landing.parity);
            landing.advance(c.args.memory.n_slots);
        }
    }
};

// The ninth warp copies the weights of all items of this block, some rounds of units at a time, as
// slots become free.
__device__ inline void copy_all_weights(const StepContext& c, WeightCopies& copies) {
    for (int step = 0; step < c.pass.n_steps; ++step) {
        for (int p = 0; p < c.pass.n_phases; ++p) {
            const CudaPhase& phase = c.phase(p);
            const ProductItems items(phase);
            StripPair strips;
            for (int item = static_cast<int>(blockIdx.x); item < items.n_items;
                 item = next_item(phase, strips, item)) {
                for (int pair = 0; pair < items.n_pairs; ++pair) {
                    strips = strip_pair(phase, item, pair);
                    for (int at = 0; at < strips.n_bytes; at += strips.copied_bytes) {
                        const int n = min(strips.copied_bytes, strips.n_bytes - at);
                        if (!copies.copy(c, strips.strips[0] + at, n) ||
                            (strips.n_strips == 2 && !copies.copy(c, strips.strips[1] + at, n))) {
                            return;
                        }
                    }
                }
            }
        }
    }
}

// The factor of the norm before a product, for every column. A warp has every eighth.
template <int Columns>
struct NormFactors {
    NormSquares squares[kTiles<Columns>];

    __device__ __forceinline__ void load(const StepContext& c) {
#pragma unroll
        for (int i = 0; i < kTiles<Columns>; ++i) {
            const int column = c.warp + kStepWarps * i;
            if (column < c.pass.n_rows) {
                squares[i].load(c.args.buffers.squares, Columns, column, c.args.shape.n_embd,
                                c.lane);
            }
        }
    }
    // To shared memory.
    __device__ __forceinline__ void give(const StepContext& c) {
#pragma unroll
        for (int i = 0; i < kTiles<Columns>; ++i) {
            const int column = c.warp + kStepWarps * i;
            if (column < c.pass.n_rows) {
                const float factor = squares[i].factor(c.args.shape.n_embd, c.args.shape.rms_eps);
                if (c.lane == 0) {
                    c.factors()[column] = factor;
                }
            }
        }
    }
};

// What a product reads, and how.
struct ProductInputs {
    int which;       // buffer of inputs
    bool is_normed;  // they are those of a norm
};

__device__ inline ProductInputs inputs_of(const CudaPhase& phase) {
    const bool is_add = phase.op == CudaPhase::Op::add;
    return {is_add ? 1 : 0, !is_add};
}

// Of 64 inputs in the region.
template <int Columns>
__device__ int input_bytes(ggml_type type) {
    return Columns * (takes_halves(type) ? 128 : 80);
}

// Units of 64 inputs that fit the region at once: whole copies of the type.
template <int Columns>
__device__ int panel_units(const StepContext& c, ggml_type type) {
    const int step = copied_rounds(type) * kRoundUnits * strip_unit(type).n_inputs / 64;
    return c.args.memory.region_bytes / input_bytes<Columns>(type) / step * step;
}

// Inputs [begin, end) of `n64`, in units of 64, to the region.
template <int Columns>
__device__ __forceinline__ void stage_inputs(
    const StepContext& c, const ProductInputs& from, ggml_type type, int begin, int end, int n64) {
    if (takes_halves(type)) {
        stage_halves<Columns>(c, from.which, begin, end, n64 * 64, type == GGML_TYPE_BF16,
                              from.is_normed);
    } else {
        stage_codes<Columns>(c, from.which, begin, end);
        wait_copies();
    }
    sync_warps();
}

template <int Columns>
using PairSums = Sums<Columns>[2];

// Adds this warp's products of a pair of strips with the inputs [begin, end) in the region, in
// units of 64.
template <int Type, int Columns>
__device__ __forceinline__ void multiply_pair(
    StepContext& c, const StripPair& strips, int begin, int end, PairSums<Columns>& sums) {
    constexpr int kPer64 = strip_unit(static_cast<ggml_type>(Type)).n_inputs / 64;
    constexpr int kUnitBytes = strip_unit(static_cast<ggml_type>(Type)).n_bytes;
    constexpr int kCopied = copied_rounds(static_cast<ggml_type>(Type)) * kRoundUnits;
    const std::uint8_t* region = c.region();
    const QuantisedInputs<Columns> inputs{
        reinterpret_cast<const std::int8_t*>(region),
        reinterpret_cast<const float2*>(region + (end - begin) * Columns * 64)};
    const auto multiply = [&](const std::uint8_t* unit, int first, Sums<Columns>& into) {
        if constexpr (takes_halves(static_cast<ggml_type>(Type))) {
            multiply_halves<Type, Columns>(unit, reinterpret_cast<const std::uint16_t*>(region),
                                           first, c.lane, into);
        } else {
            multiply_unit<Type, Columns>(unit, inputs, first, c.lane, into);
        }
    };
    const int n_slots = c.args.memory.n_slots;
    const bool has_two = strips.n_strips == 2;
    const int end_unit = end / kPer64;
#pragma unroll 1
    for (int unit = begin / kPer64; unit < end_unit; unit += kCopied) {
        const RingPosition first = c.ring;
        c.ring.advance(n_slots);
        const RingPosition second = c.ring;
        wait_for(c.full(first.slot), first.parity);
        if (has_two) {
            wait_for(c.full(second.slot), second.parity);
            c.ring.advance(n_slots);
        }
        // A strip that is alone is multiplied twice: a branch would cost more.
        const std::uint8_t* at = c.slot(first.slot) + c.warp * kUnitBytes;
        const std::uint8_t* other = has_two ? c.slot(second.slot) + c.warp * kUnitBytes : at;
        const int first_input = (unit + c.warp) * kPer64 - begin;
        const auto multiply_round = [&](int round) {
            const int input = first_input + round * kRoundUnits * kPer64;
            multiply(at + round * kRoundUnits * kUnitBytes, input, sums[0]);
            multiply(other + round * kRoundUnits * kUnitBytes, input, sums[1]);
        };
        // All but the last copy of a strip are whole.
        if (unit + kCopied <= end_unit) {
#pragma unroll
            for (int round = 0; round < kCopied / kRoundUnits; ++round) {
                multiply_round(round);
            }
        } else {
#pragma unroll 1
            for (int round = 0; unit + c.warp + round * kRoundUnits < end_unit; ++round) {
                multiply_round(round);
            }
        }
        __syncwarp();
        if (c.lane == 0) {
            arrive(c.empty(first.slot));
            if (has_two) {
                arrive(c.empty(second.slot));
            }
        }
    }
}

template <int Columns>
__device__ __forceinline__ void multiply_any(
    StepContext& c, const StripPair& strips, int begin, int end, PairSums<Columns>& sums) {
    switch (strips.type) {
#define KNAP_CASE(TYPE)                                            \
    case TYPE:                                                     \
        multiply_pair<TYPE, Columns>(c, strips, begin, end, sums); \
        break;
        KNAP_STRIP_TYPES(KNAP_CASE)
#undef KNAP_CASE
        default:
            break;
    }
}

// This warp's sums of a strip, to `out` [16][Columns].
template <int Columns>
__device__ __forceinline__ void give_sums(const Sums<Columns>& sums,
                                          float code_scale,
                                          float* out,
                                          int lane) {
    const int g = lane / 4;
    const int q = lane % 4;
#pragma unroll
    for (int tile = 0; tile < kTiles<Columns>; ++tile) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = g + 8 * (i / 2);
            const float sum = sums.at[tile][i] * code_scale;
            if constexpr (Columns == 1) {
                if (q == 0 && i % 2 == 0) {
                    out[row] = sum;
                }
            } else {
                out[row * Columns + 8 * tile + 2 * q + i % 2] = sum;
            }
        }
    }
}

// A number of an item: the sum over all warps.
template <int Columns>
__device__ __forceinline__ float item_sum(const float* sums, int strip, int row, int column) {
    float sum = 0;
#pragma unroll
    for (int warp = 0; warp < kStepWarps; ++warp) {
        sum = __fadd_rn(
            sum, sums[((warp * kMaxItemStrips + strip) * kStripRows + row) * Columns + column]);
    }
    return sum;
}

__device__ __forceinline__ float with_bias(float sum, float factor, const float* bias, int row) {
    const float product = __fmul_rn(sum, factor);
    return bias != nullptr ? __fadd_rn(product, __ldg(bias + row)) : product;
}

// Best token of this block's part of the vocabulary, as far as a lane has seen.
struct BestToken {
    float value = -INFINITY;
    int token = 0;
    float weight = 0;  // sum of exponentials, relative to `value`

    __device__ void add(float logit, int id) {
        if (logit > value) {
            weight = __fmaf_rn(weight, __expf(value - logit), 1.0f);
            value = logit;
            token = id;
        } else {
            weight += __expf(logit - value);
        }
    }
    __device__ void merge(const BestToken& other) {
        const bool is_better = other.value > value || (other.value == value && other.token < token);
        const float most = fmaxf(value, other.value);
        if (most == -INFINITY) {
            return;
        }
        weight = __fmaf_rn(weight, __expf(value - most),
                           __fmul_rn(other.weight, __expf(other.value - most)));
        value = most;
        token = is_better ? other.token : token;
    }
    __device__ void merge_lanes() {
        for (int step = 16; step > 0; step /= 2) {
            merge({__shfl_xor_sync(~0u, value, step), __shfl_xor_sync(~0u, token, step),
                   __shfl_xor_sync(~0u, weight, step)});
        }
    }
};

// What becomes of the sums of an item. All of its members must stay in registers, and so must the
// context: waiting for other blocks clears the cache that local memory is in. So arrays are indexed
// by constants only.
template <int Columns>
struct Epilogue {
    const StepContext& c;
    const CudaPhase& phase;
    const float* sums;  // of the item
    BestToken best[kTiles<Columns>];
    // What add_to_stream() adds to, and the weight of the next norm: loaded while the sums are not
    // there yet.
    float before[kTiles<Columns>];
    float weight;

    __device__ void prepare(int item) {
        if (phase.op != CudaPhase::Op::add) {
            return;
        }
        const int n_embd = c.args.shape.n_embd;
        const int channel = item * 32 + c.lane;
#pragma unroll
        for (int i = 0; i < kTiles<Columns>; ++i) {
            const int column = c.warp + kStepWarps * i;
            before[i] = column < c.pass.n_rows
                            ? __ldcg(c.args.buffers.stream + column * n_embd + channel)
                            : 0.0f;
        }
        weight = stream_writer(c.args.buffers, phase, Columns, n_embd).weight(channel);
    }

    __device__ float factor(int column) const {
        const bool is_int8 = !takes_halves(static_cast<ggml_type>(phase.parts[0].type));
        return is_int8 ? c.factors()[column] : 1.0f;  // else the inputs have it already
    }

    __device__ void finish(int item, int n_strips) {
        switch (phase.op) {
            case CudaPhase::Op::heads:
                give_heads(item, n_strips);
                break;
            case CudaPhase::Op::add:
                add_to_stream(item);
                break;
            case CudaPhase::Op::gate:
                gate(item);
                break;
            default:
                give_logits(item);
                break;
        }
    }

    __device__ void give_heads(int item, int n_strips) {
        const CudaShape& shape = c.args.shape;
        const int width = shape.n_q() + 2 * shape.n_kv();
        for (int i = c.thread; i < 2 * kStripRows * c.pass.n_rows; i += kStepThreads) {
            const int row = i % kStripRows;
            const int which = i / kStripRows % 2;
            const int column = i / kStripRows / 2;
            if (which >= n_strips) {
                continue;
            }
            const int place = item + which * static_cast<int>(gridDim.x);
            int strip = place;
            const CudaMatrix& matrix = heads_part(phase, strip);
            c.args.buffers.heads[column * width + place * kStripRows + row] =
                with_bias(item_sum<Columns>(sums, which, row, column), factor(column), matrix.bias,
                          strip * kStripRows + row);
        }
    }

    __device__ void add_to_stream(int item) {
        const CudaShape& shape = c.args.shape;
        const StreamWriter writer = stream_writer(c.args.buffers, phase, Columns, shape.n_embd);
        const int first = item * 32;
#pragma unroll
        for (int i = 0; i < kTiles<Columns>; ++i) {
            const int column = c.warp + kStepWarps * i;
            if (column < c.pass.n_rows) {
                const float sum = item_sum<Columns>(sums, c.lane / 16, c.lane % 16, column);
                const float x =
                    __fadd_rn(before[i], with_bias(sum, 1.0f, phase.parts[0].bias, first + c.lane));
                c.args.buffers.stream[column * shape.n_embd + first + c.lane] = x;
                writer.write(x, weight, first, column, c.lane);
            }
        }
    }

    __device__ void gate(int item) {
        const InputWriter writer =
            input_writer(c.args.buffers, 1, Columns, c.args.shape.n_ff, phase.gives_halves);
        const int first = item * 32;
        const int row = first + c.lane;
        for (int column = c.warp; column < c.pass.n_rows; column += kStepWarps) {
            const float gated = with_bias(item_sum<Columns>(sums, c.lane / 16, c.lane % 16, column),
                                          factor(column), phase.parts[0].bias, row);
            const float up =
                with_bias(item_sum<Columns>(sums, 2 + c.lane / 16, c.lane % 16, column),
                          factor(column), phase.parts[1].bias, row);
            writer.write(gated / (1.0f + __expf(-gated)) * up, first, column, c.lane);
        }
    }

    __device__ void give_logits(int item) {
        const int n_vocab = c.args.shape.n_vocab;
        const int row = item * 32 + c.lane;
#pragma unroll
        for (int i = 0; i < kTiles<Columns>; ++i) {
            const int column = c.warp + kStepWarps * i;
            if (column >= c.pass.n_rows || row >= n_vocab) {
                continue;
            }
            const float logit = with_bias(item_sum<Columns>(sums, c.lane / 16, c.lane % 16, column),
                                          factor(column), phase.parts[0].bias, row);
            c.args.buffers
                .logits[static_cast<std::size_t>(column) * static_cast<std::size_t>(n_vocab) +
                        static_cast<std::size_t>(row)] = logit;
            best[i].add(logit, row);
        }
    }

    // After the last item of the head.
    __device__ void give_best() {
#pragma unroll
        for (int i = 0; i < kTiles<Columns>; ++i) {
            const int column = c.warp + kStepWarps * i;
            if (column < c.pass.n_rows) {
                best[i].merge_lanes();
                if (c.lane == 0) {
                    reinterpret_cast<float4*>(
                        c.args.buffers.best)[blockIdx.x * kMaxStepRows + column] =
                        make_float4(best[i].value, __int_as_float(best[i].token), best[i].weight,
                                    0);
                }
            }
        }
    }
};

template <int Columns>
__device__ __forceinline__ void run_product(StepContext& c, const CudaPhase& phase) {
    const ProductInputs from = inputs_of(phase);
    const ProductItems items(phase);
    // The epilogue needs the norm's factors, or floats that are rounded now.
    NormFactors<Columns> factors;
    bool has_factors = !from.is_normed;
    if (!has_factors) {
        factors.load(c);
    }
    if (!has_factors && takes_halves(static_cast<ggml_type>(phase.parts[0].type))) {
        factors.give(c);
        has_factors = true;
        sync_warps();
    }
    float* sums = c.sums();
    Epilogue<Columns> epilogue{c, phase, sums, {}, {}, 0};
    bool is_staged = false;
    StripPair strips;
#pragma unroll 1
    for (int item = static_cast<int>(blockIdx.x); item < items.n_items;
         item = next_item(phase, strips, item)) {
        epilogue.prepare(item);
#pragma unroll 1
        for (int pair = 0; pair < items.n_pairs; ++pair) {
            strips = strip_pair(phase, item, pair);
            const int n64 = strips.n64;
            const int bytes = n64 * input_bytes<Columns>(strips.type);
            const bool is_whole = bytes <= c.args.memory.region_bytes;
            const int panel = is_whole ? n64 : panel_units<Columns>(c, strips.type);
            PairSums<Columns> own;
            own[0].clear();
            own[1].clear();
#pragma unroll 1
            for (int begin = 0; begin < n64; begin += panel) {
                const int end = min(n64, begin + panel);
                if (!is_staged) {
                    if (begin > 0 || pair > 0) {
                        sync_warps();
                    }
                    stage_inputs<Columns>(c, from, strips.type, begin, end, n64);
                }
                multiply_any<Columns>(c, strips, begin, end, own);
            }
            if (!has_factors) {
                factors.give(c);
                has_factors = true;
            }
            is_staged = is_whole;  // inputs that fit the region at once stay
            const float code_scale = unit::code_scale(strips.type);
            float* out = sums + (c.warp * kMaxItemStrips + 2 * pair) * kStripRows * Columns;
            give_sums<Columns>(own[0], code_scale, out, c.lane);
            give_sums<Columns>(own[1], code_scale, out + kStripRows * Columns, c.lane);
        }
        sync_warps();
        epilogue.sums = sums;
        epilogue.finish(item, strips.n_strips);
        if constexpr (sum_buffers(Columns) == 1) {
            sync_warps();
        } else {
            // The other buffer's readers have passed the barrier above.
            sums = sums == c.sums() ? c.sums() + sum_numbers(Columns) : c.sums();
        }
    }
    if (phase.op == CudaPhase::Op::head) {
        epilogue.give_best();
    }
}

}  // namespace knap
