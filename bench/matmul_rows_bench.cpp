// What do N rows cost relative to one, for each weight type, and does a row's result depend on N?
// Times ggml's kernels, plain and repacked, and ours, and our speed relative to the faster of
// ggml's. Uses square matrices, more of them than the last-level cache holds.
//
//     matmul_rows_bench [THREADS] [TYPE...]       types as ggml names them: q4_0 iq4_xs
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iterator>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ggml-alloc.h"
#include "ggml-backend.h"

#include "base/error.h"
#include "bench_main.h"
#include "graph/products.h"
#include "kernels/matmul/matmul.h"
#include "measure.h"
#include "model/packed_weight.h"
#include "single_graph.h"

namespace knap::bench {
namespace {

constexpr int kWidth = 2048;
constexpr std::size_t kBytes = 96u << 20;  // weights read per run
constexpr int kRows[] = {1, 2, 3, 4, 6, 7, 8, 12, 16, 128};
constexpr int kRounds = 9;

std::vector<float> random_values(std::size_t n, unsigned seed) {
    std::mt19937 engine(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values(n);
    for (float& value : values) {
        value = normal(engine);
    }
    return values;
}

// Matrices of one type in one kind of buffer. Empty when the device does not support the type
// there.
struct Matrices {
    ggml_context_ptr context;
    ggml_backend_buffer_ptr buffer;
    std::vector<ggml_tensor*> weights;  // each [kWidth, kWidth]
    std::deque<PackedWeight> packed;    // each in our layout
};

// Creates tensors of one type, without memory.
Matrices make_tensors(ggml_type type) {
    const std::size_t count = kBytes / (ggml_row_size(type, kWidth) * kWidth) + 1;
    Matrices matrices;
    matrices.context.reset(ggml_init({count * ggml_tensor_overhead(), nullptr, true}));
    for (std::size_t i = 0; i < count; ++i) {
        matrices.weights.push_back(
            ggml_new_tensor_2d(matrices.context.get(), type, kWidth, kWidth));
    }
    return matrices;
}

std::vector<std::byte> random_matrix(ggml_type type) {
    const auto values = random_values(std::size_t{kWidth} * kWidth, 1);
    std::vector<std::byte> stored(ggml_row_size(type, kWidth) * kWidth);
    ggml_quantize_chunk(type, values.data(), stored.data(), 0, kWidth, kWidth, nullptr);
    return stored;
}

bool takes(const Backend& backend, ggml_backend_buffer_type_t type, ggml_tensor* weight) {
    ggml_context_ptr context(ggml_init({4 * ggml_tensor_overhead(), nullptr, true}));
    ggml_backend_buffer_ptr buffer(ggml_backend_buft_alloc_buffer(type, 0));
    weight->buffer = buffer.get();
    ggml_tensor* x = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, kWidth, 1);
    const bool is_taken = backend.supports(ggml_mul_mat(context.get(), weight, x));
    weight->buffer = nullptr;
    return is_taken;
}

Matrices make_matrices(const Backend& backend, ggml_type type, ggml_backend_buffer_type_t where) {
    Matrices matrices = make_tensors(type);
    if (!takes(backend, where, matrices.weights.front())) {
        return {};
    }
    matrices.buffer.reset(ggml_backend_alloc_ctx_tensors_from_buft(matrices.context.get(), where));
    const std::vector<std::byte> stored = random_matrix(type);
    for (ggml_tensor* weight : matrices.weights) {
        ggml_backend_tensor_set(weight, stored.data(), 0, stored.size());
    }
    return matrices;
}

Matrices make_packed(const Backend& backend, ggml_type type) {
    if (!can_pack(type, kWidth) || !has_fast_matmul()) {
        return {};
    }
    Matrices matrices = make_tensors(type);
    matrices.buffer.reset(
        ggml_backend_alloc_ctx_tensors_from_buft(matrices.context.get(), backend.buffer_type()));
    const std::vector<std::byte> stored = random_matrix(type);
    for (ggml_tensor* weight : matrices.weights) {
        const PackedWeight& packed = matrices.packed.emplace_back(
            PackedWeight{{type, kWidth, kWidth, static_cast<std::byte*>(weight->data)}});
        for (int row = 0; row < kWidth; ++row) {
            pack_row(packed.matrix, row,
                     stored.data() + ggml_row_size(type, kWidth) * static_cast<std::size_t>(row));
        }
        set_packed_weight(weight, packed);
    }
    return matrices;
}

// Multiplies every matrix with the same `n_rows` rows.
struct Product {
    Product(Backend& backend, const Matrices& matrices, int n_rows) : graph(backend) {
        ggml_context* ctx = graph.context();
        x = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, kWidth, n_rows);
        ggml_set_input(x);
        ggml_set_output(x);  // kept between runs
        for (ggml_tensor* weight : matrices.weights) {
            ProductInput input = ProductInput::rows(x);
            y = build_product(ctx, weight, input);
            ggml_build_forward_expand(graph.graph(), y);
        }
        graph.finish(y);
        const auto values =
            random_values(std::size_t{kWidth} * static_cast<std::size_t>(n_rows), 2);
        ggml_backend_tensor_set(x, values.data(), 0, ggml_nbytes(x));
    }
    std::vector<float> first_row() const {
        std::vector<float> row(kWidth);
        ggml_backend_tensor_get(y, row.data(), 0, row.size() * sizeof(float));
        return row;
    }

    SingleGraph graph;
    ggml_tensor* x = nullptr;
    ggml_tensor* y = nullptr;
};

// The time for each number of rows. Empty when there are no matrices.
std::vector<double> measure(Backend& backend, const Matrices& matrices, const char* layout) {
    if (matrices.weights.empty()) {
        return {};
    }
    const ggml_type type = matrices.weights.front()->type;
    std::vector<std::unique_ptr<Product>> products;
    std::vector<Contestant> contestants;
    for (const int n_rows : kRows) {
        products.push_back(std::make_unique<Product>(backend, matrices, n_rows));
        contestants.push_back(
            {std::to_string(n_rows), [product = products.back().get()] { product->graph.run(); }});
    }
    alternate(contestants, kRounds);
    const double one = median(contestants.front().times_ms);
    const double gigabytes =
        static_cast<double>(matrices.weights.size()) * ggml_row_size(type, kWidth) * kWidth * 1e-9;
    std::printf("%-7s %-7s %6.1f |", ggml_type_name(type), layout, gigabytes / one * 1e3);
    std::string equal;
    std::vector<double> times;
    for (std::size_t i = 0; i < products.size(); ++i) {
        times.push_back(median(contestants[i].times_ms));
        std::printf(" %5.2f", times.back() / one);
        equal += products[i]->first_row() == products.front()->first_row() ? '=' : 'x';
    }
    std::printf(" | %s\n", equal.c_str());
    std::fflush(stdout);
    return times;
}

void measure_type(Backend& backend, ggml_type type) {
    std::vector<double> best =
        measure(backend, make_matrices(backend, type, backend.buffer_type()), "plain");
    for (const auto extra : backend.extra_buffer_types()) {
        const std::vector<double> times =
            measure(backend, make_matrices(backend, type, extra), "repack");
        for (std::size_t i = 0; i < times.size(); ++i) {
            best[i] = std::min(best[i], times[i]);
        }
    }
    const std::vector<double> ours = measure(backend, make_packed(backend, type), "packed");
    if (ours.empty()) {
        return;
    }
    std::printf("%-22s |", "  times as fast");
    for (std::size_t i = 0; i < ours.size(); ++i) {
        std::printf(" %5.2f", best[i] / ours[i]);
    }
    std::printf(" |\n");
}

constexpr ggml_type kTypes[] = {
    GGML_TYPE_F32,  GGML_TYPE_F16,    GGML_TYPE_BF16,   GGML_TYPE_Q8_0,
    GGML_TYPE_Q4_0, GGML_TYPE_Q4_1,   GGML_TYPE_Q5_0,   GGML_TYPE_Q5_1,
    GGML_TYPE_Q2_K, GGML_TYPE_Q3_K,   GGML_TYPE_Q4_K,   GGML_TYPE_Q5_K,
    GGML_TYPE_Q6_K, GGML_TYPE_IQ4_NL, GGML_TYPE_IQ4_XS, GGML_TYPE_MXFP4,
};

ggml_type find_type(std::string_view name) {
    const auto type = std::ranges::find_if(
        kTypes, [&](ggml_type known) { return ggml_type_name(known) == name; });
    if (type == std::end(kTypes)) {
        fail("expected a type as in q4_0 or iq4_xs, found ", name);
    }
    return *type;
}

// Every type if none is named.
std::vector<ggml_type> find_types(std::span<char*> names) {
    if (names.empty()) {
        return {std::begin(kTypes), std::end(kTypes)};
    }
    std::vector<ggml_type> types(names.size());
    std::ranges::transform(names, types.begin(), find_type);
    return types;
}

void run(int n_threads, const std::vector<ggml_type>& types) {
    Backend backend(n_threads);
    std::printf(
        "%d threads, %d x %d; GB/s at one row; time of N rows / time of one; =: row 0 is "
        "bit-identical to a single row\n",
        backend.n_threads(), kWidth, kWidth);
    std::printf("%-15s %6s |", "type", "GB/s");
    for (const int n_rows : kRows) {
        std::printf(" N=%-3d", n_rows);
    }
    std::printf(" | equal\n");
    for (const ggml_type type : types) {
        measure_type(backend, type);
    }
}

}  // namespace
}  // namespace knap::bench

int main(int argc, char** argv) {
    return knap::bench::bench_main("matmul_rows_bench", [&] {
        const std::span<char*> arguments(argv + 1, argv + argc);
        const std::size_t n_numbers = arguments.empty() ? 0 : 1;
        knap::bench::run(n_numbers > 0 ? std::atoi(arguments[0]) : 0,
                         knap::bench::find_types(arguments.subspan(n_numbers)));
    });
}
