// The reference: one number at a time.
#include <cmath>

#include "ggml.h"

#include "kernels/attention_body.h"
#include "kernels/attention_variants.h"

namespace knap {
namespace {

struct PlainSimd {
    using Vector = float;
    static constexpr int kWidth = 1;
    static constexpr int kRegisters = 16;

    static Vector zero() { return 0.0f; }
    static Vector broadcast(float x) { return x; }
    static Vector load(const float* p) { return *p; }
    static void store(float* p, Vector x) { *p = x; }
    static Vector load_half(const std::uint16_t* p) { return ggml_fp16_to_fp32(*p); }
    static Vector add(Vector a, Vector b) { return a + b; }
    static Vector multiply(Vector a, Vector b) { return a * b; }
    static Vector fmadd(Vector a, Vector b, Vector c) { return a * b + c; }
    static Vector max(Vector a, Vector b) { return a > b ? a : b; }
    static Vector round(Vector x) { return std::nearbyint(x); }
    static Vector pow2(Vector n) { return std::ldexp(1.0f, static_cast<int>(n)); }
    static Vector keep_if_at_least(Vector x, Vector bound, Vector value) {
        return x >= bound ? value : 0.0f;
    }
    static float reduce_max(Vector x) { return x; }
    static float reduce_add(Vector x) { return x; }
};

}  // namespace

const AttentionKernel kPlainAttention{"plain", AttentionBody<PlainSimd>::run_chunk,
                                      AttentionBody<PlainSimd>::merge};

}  // namespace knap
