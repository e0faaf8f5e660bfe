// AVX-512 with the tile registers of AMX for products of many rows. Called only on machines that
// have both.
#include "kernels/matmul/amx_tiles.h"
#include "kernels/matmul/matmul_variants.h"
#include "kernels/matmul/tile_products.h"
#include "kernels/simd_avx512.h"

namespace knap {
namespace {

// A tile is 16 rows, and takes as long if fewer are there.
constexpr int kFewestRows = 16;

template <ggml_type Type>
void multiply_type(const Product& product) {
    using Products = TileProducts<Avx512Simd, AmxTiles, Type>;
    if (product.n_rows >= kFewestRows && Products::takes(product)) {
        Products::run(product);
    } else {
        kAvx512Matmul.multiply(product);
    }
}

}  // namespace

void multiply_with_amx(const Product& product) {
    switch (product.matrix->type) {
        case GGML_TYPE_Q4_0:
            return multiply_type<GGML_TYPE_Q4_0>(product);
        case GGML_TYPE_Q4_1:
            return multiply_type<GGML_TYPE_Q4_1>(product);
        case GGML_TYPE_Q5_0:
            return multiply_type<GGML_TYPE_Q5_0>(product);
        case GGML_TYPE_Q5_1:
            return multiply_type<GGML_TYPE_Q5_1>(product);
        case GGML_TYPE_Q8_0:
            return multiply_type<GGML_TYPE_Q8_0>(product);
        case GGML_TYPE_IQ4_NL:
            return multiply_type<GGML_TYPE_IQ4_NL>(product);
        case GGML_TYPE_MXFP4:
            return multiply_type<GGML_TYPE_MXFP4>(product);
        case GGML_TYPE_Q4_K:
            return multiply_type<GGML_TYPE_Q4_K>(product);
        case GGML_TYPE_Q5_K:
            return multiply_type<GGML_TYPE_Q5_K>(product);
        case GGML_TYPE_IQ4_XS:
            return multiply_type<GGML_TYPE_IQ4_XS>(product);
        default:  // floats, and types with a scale for every 16 inputs
            return kAvx512Matmul.multiply(product);
    }
}

}  // namespace knap
