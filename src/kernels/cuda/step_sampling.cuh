// Tokens drawn on the device, for chains: the transforms of src/sampling/distribution.cpp in their
// order, with its noise, in double where it is. Drafts never decide, so a draw may differ from the
// host's where rounding decides: two tokens whose probability over noise agree in six digits, or a
// token at a cut. Two more cases may differ, which are left out of the list on purpose or for lack
// of room: top-p without top-k where the tokens that it keeps go on below kListedWeight, and more
// than kMaxListed tokens that may be drawn.
//
// Top-k, top-p and min-p all keep the first tokens of the ranking. So all blocks list the tokens
// that may be among those, each from its part of the vocabulary, and one block ranks them and
// draws.
#pragma once

#include "kernels/cuda/step_product.cuh"
#include "sampling/noise.h"
#include "sampling/ranking.h"

namespace knap {

// Top-p without top-k looks at tokens of at least this weight; the most probable one has 1.
inline constexpr float kListedWeight = 1.0f / 512;

// In the region: the list, and the same in order; or the largest logits of all blocks.
static_assert(kDrawBytes == 2 * kMaxListed * static_cast<int>(sizeof(RankKey)));

// The host's weight of a token, but for how its exponential rounds.
__device__ __forceinline__ float draw_weight(float logit, float most, float temperature) {
    const float x = __fdiv_rn(__fsub_rn(logit, most), temperature);
    return static_cast<float>(exp(static_cast<double>(x)));
}

__device__ __forceinline__ double warp_sum_of(double x) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        x += __shfl_xor_sync(~0u, x, step);
    }
    return x;
}

// The token with the largest probability over noise so far; the first in rank wins a tie.
struct BestDraw {
    double ratio = 0;
    RankKey key = ~RankKey{0};

    __device__ void add(double probability, RankKey other, const PositionNoise& noise) {
        const double uniform = noise.uniform(token_of(other));
        if (probability <= ratio * (1.0 - uniform)) {
            return;  // the noise is at least 1 - uniform
        }
        merge({probability / -log(uniform), other});
    }
    __device__ void merge(const BestDraw& other) {
        if (other.ratio > ratio || (other.ratio == ratio && other.key < key)) {
            *this = other;
        }
    }
    __device__ void merge_lanes() {
#pragma unroll
        for (int step = 16; step > 0; step /= 2) {
            merge({__shfl_xor_sync(~0u, ratio, step), __shfl_xor_sync(~0u, key, step)});
        }
    }
};

// A row of logits, as the head left it in each block.
struct RowOfLogits {
    const float* logits;
    PositionNoise noise;
    int column;

    __device__ RowOfLogits(const StepContext& c, int row)
        : logits(c.args.buffers.logits +
                 static_cast<std::size_t>(row) * static_cast<std::size_t>(c.args.shape.n_vocab)),
          noise(c.pass.draw.rule.seed, c.pass.draw.first_position + (c.is_chain() ? c.step : row)),
          column(row) {}

    __device__ const float4* best_of(const StepContext& c, int block) const {
        return reinterpret_cast<const float4*>(c.args.buffers.best) + block * kMaxStepRows + column;
    }
    __device__ CudaDrawn* drawn_by(const StepContext& c, int block) const {
        return c.args.buffers.drawn + block * kMaxStepRows + column;
    }
    __device__ std::uint64_t* list(const StepContext& c) const {
        return c.args.buffers.listed + column * kMaxListed;
    }
};

// The largest logit, and the least that a token needs to be listed.
struct ListBounds {
    float most;
    float least;
};

// As many blocks as top-k counts have a logit of at least the k-th largest of the blocks' largest,
// so no token below that is among the k most probable. By all warps.
__device__ inline ListBounds find_bounds(const StepContext& c, const RowOfLogits& row) {
    const DrawRule& rule = c.pass.draw.rule;
    auto* tops = reinterpret_cast<float*>(c.region());
    const auto n = static_cast<int>(gridDim.x);
    float* kth = tops + n;
    for (int i = c.thread; i < n; i += kStepThreads) {
        tops[i] = __ldcg(&row.best_of(c, i)->x);
    }
    if (c.thread == 0) {
        *kth = -INFINITY;
    }
    sync_warps();
    float most = -INFINITY;
    for (int i = 0; i < n; ++i) {
        most = fmaxf(most, tops[i]);
    }
    if (rule.top_k > 0) {
        for (int i = c.thread; i < n; i += kStepThreads) {
            int n_before = 0;
            for (int j = 0; j < n; ++j) {
                n_before += tops[j] > tops[i] || (tops[j] == tops[i] && j < i) ? 1 : 0;
            }
            if (n_before == rule.top_k - 1) {
                *kth = tops[i];
            }
        }
    }
    sync_warps();
    float least = *kth;
    // Weights are compared exactly later: here a little less will do.
    const auto list_from = [&](float weight) {
        if (weight > 0) {
            const float below = logf(weight) * rule.temperature;
            least = fmaxf(least, most + below - fabsf(below) * 1e-5f - fabsf(most) * 1e-6f);
        }
    };
    list_from(rule.min_p);
    if (rule.top_k == 0) {
        list_from(kListedWeight);
    }
    sync_warps();  // before the region is written again
    return {most, least};
}

// What a block sees of its part of the vocabulary: the tokens to list, and without top-k the best
// draw of all tokens that min-p keeps, and the sum of weights.
__device__ inline void list_part(const StepContext& c, const RowOfLogits& row) {
    const DrawRule& rule = c.pass.draw.rule;
    const ListBounds bounds = find_bounds(c, row);
    const int n_vocab = c.args.shape.n_vocab;
    const int n_own = (n_vocab + static_cast<int>(gridDim.x) - 1) / static_cast<int>(gridDim.x);
    const int begin = static_cast<int>(blockIdx.x) * n_own;
    const int end = min(n_vocab, begin + n_own);
    const bool has_list = rule.top_k > 0 || rule.top_p < 1.0f;
    BestDraw best;
    double sum = 0;
    for (int token = begin + c.thread; token < end; token += kStepThreads) {
        const float logit = __ldcg(row.logits + token);
        if (has_list && logit >= bounds.least) {
            const int at = atomicAdd(c.args.buffers.n_listed + row.column, 1);
            if (at < kMaxListed) {
                row.list(c)[at] = rank_key(logit, token);
            }
        }
        if (rule.top_k == 0) {
            const float weight = draw_weight(logit, bounds.most, rule.temperature);
            const bool is_kept = weight > 0 && weight >= rule.min_p;
            sum += is_kept || has_list ? weight : 0.0f;
            if (is_kept) {
                best.add(weight, rank_key(logit, token), row.noise);
            }
        }
    }
    if (rule.top_k > 0) {
        return;
    }
    best.merge_lanes();
    sum = warp_sum_of(sum);
    auto* of_warps = reinterpret_cast<CudaDrawn*>(c.region());
    if (c.lane == 0) {
        of_warps[c.warp] = {best.ratio, sum, best.key};
    }
    sync_warps();
    if (c.thread == 0) {
        for (int warp = 1; warp < kStepWarps; ++warp) {
            best.merge({of_warps[warp].ratio, of_warps[warp].key});
            sum += of_warps[warp].sum;
        }
        *row.drawn_by(c, static_cast<int>(blockIdx.x)) = {best.ratio, sum, best.key};
    }
    sync_warps();
}

__device__ inline void list_tokens(const StepContext& c) {
    for (int row = 0; row < c.pass.n_rows; ++row) {
        list_part(c, RowOfLogits(c, row));
    }
}

// The list in order, in the region; returns its length. By all warps.
__device__ inline int rank_list(const StepContext& c, const RowOfLogits& row, int n) {
    auto* keys = reinterpret_cast<RankKey*>(c.region());
    RankKey* ranked = keys + kMaxListed;
    for (int i = c.thread; i < n; i += kStepThreads) {
        keys[i] = __ldcg(row.list(c) + i);
    }
    sync_warps();
    for (int i = c.thread; i < n; i += kStepThreads) {
        int rank = 0;
        for (int j = 0; j < n; ++j) {
            rank += keys[j] < keys[i] ? 1 : 0;
        }
        ranked[rank] = keys[i];
    }
    sync_warps();
    return n;
}

// The part of the ranking that all cuts keep.
struct KeptTokens {
    int n = 0;
    double mass = 0;
    bool is_cut = false;  // by top-p or min-p, so that nothing beyond the list is kept
};

// By one warp. `sum` is that of all weights, without top-k.
__device__ inline KeptTokens cut_list(
    const DrawRule& rule, const RankKey* ranked, int n, float most, double sum, int lane) {
    int n_ranked = n;
    if (rule.top_k > 0 && n > rule.top_k) {
        n_ranked = rule.top_k;
        const float least = logit_of(ranked[rule.top_k - 1]);
        while (n_ranked < n && logit_of(ranked[n_ranked]) == least) {
            ++n_ranked;
        }
    }
    const auto weight_of = [&](int i) {
        return draw_weight(logit_of(ranked[i]), most, rule.temperature);
    };
    if (rule.top_k > 0) {
        sum = 0;
        for (int i = lane; i < n_ranked; i += 32) {
            sum += weight_of(i);
        }
        sum = warp_sum_of(sum);
    }
    const double limit = rule.top_p < 1.0f ? rule.top_p * sum : INFINITY;
    KeptTokens kept;
    for (int first = 0; first < n_ranked && !kept.is_cut; first += 32) {
        const int i = first + lane;
        const float weight = i < n_ranked ? weight_of(i) : 0.0f;
        double up_to = weight;  // of the lanes up to this one
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const double before = __shfl_up_sync(~0u, up_to, step);
            up_to += lane >= step ? before : 0.0;
        }
        const bool is_kept = i < n_ranked && weight > 0 && weight >= rule.min_p &&
                             kept.mass + (up_to - weight) < limit;
        const int n_kept = __popc(__ballot_sync(~0u, is_kept));
        kept.is_cut = n_kept < min(32, n_ranked - first);
        kept.n += n_kept;
        kept.mass += n_kept > 0 ? __shfl_sync(~0u, up_to, max(0, n_kept - 1)) : 0.0;
    }
    kept.is_cut = kept.is_cut || kept.mass >= limit;
    return kept;
}

// A token and its probability in what it was drawn from.
struct DrawnToken {
    RankKey key;
    float probability;
};

// By one warp.
__device__ inline DrawnToken draw_listed(const StepContext& c,
                                         const RowOfLogits& row,
                                         const RankKey* ranked,
                                         const KeptTokens& kept,
                                         float most) {
    const float temperature = c.pass.draw.rule.temperature;
    const auto probability_of = [&](RankKey key) {
        return static_cast<float>(draw_weight(logit_of(key), most, temperature) / kept.mass);
    };
    BestDraw best;
    for (int i = c.lane; i < kept.n; i += 32) {
        best.add(probability_of(ranked[i]), ranked[i], row.noise);
    }
    best.merge_lanes();
    return {best.key, probability_of(best.key)};
}

// The best draw of all blocks, and the sum of weights.
__device__ inline CudaDrawn merge_drawn(const StepContext& c, const RowOfLogits& row) {
    BestDraw best;
    double sum = 0;
    for (int i = c.lane; i < static_cast<int>(gridDim.x); i += 32) {
        const CudaDrawn* one = row.drawn_by(c, i);
        best.merge({__ldcg(&one->ratio), __ldcg(&one->key)});
        sum += __ldcg(&one->sum);
    }
    best.merge_lanes();
    return {best.ratio, warp_sum_of(sum), best.key};
}

// By one warp: the draw from the `n` tokens listed, or from all where the list does not have all
// that may be kept. `n_wanted` tokens wanted to be listed.
__device__ inline DrawnToken draw_token(
    const StepContext& c, const RowOfLogits& row, int n_wanted, int n, float most) {
    const DrawRule& rule = c.pass.draw.rule;
    const RankKey* ranked = reinterpret_cast<const RankKey*>(c.region()) + kMaxListed;
    if (rule.top_k > 0) {
        return draw_listed(c, row, ranked, cut_list(rule, ranked, n, most, 0, c.lane), most);
    }
    const CudaDrawn of_all = merge_drawn(c, row);
    if (rule.top_p < 1.0f && n_wanted <= kMaxListed) {
        const KeptTokens kept = cut_list(rule, ranked, n, most, of_all.sum, c.lane);
        if (kept.is_cut || rule.min_p >= kListedWeight) {
            return draw_listed(c, row, ranked, kept, most);
        }
    }
    const float weight = draw_weight(logit_of(of_all.key), most, rule.temperature);
    return {of_all.key, static_cast<float>(weight / of_all.sum)};
}

// The largest logit of a row, its token, and the sum of exponentials. By one warp.
__device__ __forceinline__ BestToken merge_best(const StepContext& c, int column) {
    BestToken best;
    for (int i = c.lane; i < static_cast<int>(gridDim.x); i += 32) {
        const float4 one = __ldcg(reinterpret_cast<const float4*>(c.args.buffers.best) +
                                  i * kMaxStepRows + column);
        best.merge({one.x, __float_as_int(one.y), one.z});
    }
    best.merge_lanes();
    return best;
}

// A step of a chain has chosen: whether another follows. By the thread that wrote the confidences.
__device__ inline void end_step(const StepContext& c) {
    const CudaDraw& draw = c.pass.draw;
    bool goes_on = c.step + 1 < c.pass.n_steps;
    if (draw.stops) {
        StopState stop = draw.stop;
        for (int i = 0; i <= c.step; ++i) {
            goes_on = stop.goes_on(__ldcg(c.args.buffers.probabilities + i), false) && goes_on;
        }
    }
    if (!goes_on) {
        *c.args.buffers.n_done = c.step + 1;
    }
}

__device__ __forceinline__ void give_choice(const StepContext& c,
                                            int column,
                                            int token,
                                            float confidence) {
    const int at = c.is_chain() ? c.step : column;
    c.args.buffers.choices[at] = token;
    c.args.buffers.probabilities[at] = confidence;
    if (column == 0) {
        end_step(c);
    }
}

// By one block for each row.
__device__ inline void draw_tokens(const StepContext& c) {
    const auto column = static_cast<int>(blockIdx.x);
    if (column >= c.pass.n_rows) {
        return;
    }
    const RowOfLogits row(c, column);
    int* n_listed = c.args.buffers.n_listed + column;
    const int n_wanted = __ldcg(n_listed);
    const int n = rank_list(c, row, min(n_wanted, kMaxListed));
    if (c.warp > 0) {
        return;
    }
    const BestToken best = merge_best(c, column);
    const DrawnToken drawn = draw_token(c, row, n_wanted, n, best.value);
    if (c.lane == 0) {
        *n_listed = 0;
        float confidence = 1.0f / best.weight;
        if (c.pass.draw.confidence_of == ConfidenceOf::drafted) {
            confidence *= expf(logit_of(drawn.key) - best.value);
        } else if (c.pass.draw.confidence_of == ConfidenceOf::drawn) {
            confidence = drawn.probability;
        }
        // Logits that are no numbers leave nothing to draw.
        const bool is_drawn = drawn.key != ~RankKey{0};
        give_choice(c, column, is_drawn ? token_of(drawn.key) : best.token, confidence);
    }
}

// The best token of every row.
__device__ __forceinline__ void choose_tokens(const StepContext& c) {
    if (blockIdx.x > 0) {
        return;
    }
    for (int column = c.warp; column < c.pass.n_rows; column += kStepWarps) {
        const BestToken best = merge_best(c, column);
        if (c.lane == 0) {
            give_choice(c, column, best.token, 1.0f / best.weight);
        }
    }
}

}  // namespace knap
