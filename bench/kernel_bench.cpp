// How fast are our kernels for products, by instruction set, weight type and number of rows? The
// instruction sets that this machine has and KNAP_ISA allows take turns on the same matrices, more
// of them than the last-level cache holds, shared out to threads as in a pass.
//
// To compare with ggml's kernels, see matmul_rows_bench. To compare two versions of our own, build
// both and run the programs in turn.
//
//     kernel_bench [--threads N] [--types q4_1,q4_K,...] [--rows 1,8,16,128] [--repeat R]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "bench_main.h"
#include "cpu/tiles.h"
#include "device/cpu_topology.h"
#include "device/thread_team.h"
#include "kernels/matmul/matmul.h"
#include "measure.h"

namespace knap::bench {
namespace {

constexpr int kWidth = 2048;
constexpr std::size_t kBytes = 96u << 20;  // weights read per run

struct Options {
    int n_threads = default_thread_count();
    std::vector<std::string> types{"q4_0", "q4_1", "q8_0", "q4_K", "q6_K"};
    std::vector<int> rows{1, 8, 16, 128};
    int n_rounds = 9;
};

ggml_type find_type(const std::string& name) {
    for (int i = 0; i < GGML_TYPE_COUNT; ++i) {
        const auto type = static_cast<ggml_type>(i);
        if (name == ggml_type_name(type) && can_pack(type, kWidth)) {
            return type;
        }
    }
    fail("--types: expected types that our kernels take, as in q4_1 or q4_K, found ", name);
}

// Matrices with the same random weights.
class Matrices {
  public:
    explicit Matrices(ggml_type type) : n_bytes_(packed_bytes(type, kWidth, kWidth)) {
        const std::size_t n = kBytes / n_bytes_ + 1;
        memory_.resize(n * n_bytes_ + kPackedAlignment);
        const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
        std::byte* at = memory_.data() + kPackedAlignment - address % kPackedAlignment;
        std::vector<float> numbers(std::size_t{kWidth} * kWidth);
        unsigned state = 1;
        for (float& number : numbers) {
            state = state * 1664525U + 1013904223U;
            number = static_cast<float>(state >> 8U) * 0x1p-23f - 1.0f;
        }
        const std::size_t row_bytes = ggml_row_size(type, kWidth);
        std::vector<std::byte> stored(row_bytes * kWidth);
        ggml_quantize_chunk(type, numbers.data(), stored.data(), 0, kWidth, kWidth, nullptr);
        for (std::size_t i = 0; i < n; ++i, at += n_bytes_) {
            matrices_.push_back({.type = type, .n_in = kWidth, .n_out = kWidth, .data = at});
            for (int row = 0; row < kWidth; ++row) {
                pack_row(matrices_.back(), row,
                         stored.data() + row_bytes * static_cast<std::size_t>(row));
            }
        }
    }
    const std::vector<PackedMatrix>& all() const { return matrices_; }

  private:
    std::size_t n_bytes_;
    std::vector<std::byte> memory_;
    std::vector<PackedMatrix> matrices_;
};

// Multiplies every matrix with the same rows.
class Rows {
  public:
    Rows(const MatmulKernel& kernel, const Matrices& matrices, int n_rows)
        : kernel_(kernel),
          matrices_(matrices),
          n_rows_(n_rows),
          row_bytes_(input_row_bytes(input_form(type()), kWidth)),
          inputs_(row_bytes_ * static_cast<std::size_t>(n_rows)),
          out_(std::size_t{kWidth} * static_cast<std::size_t>(n_rows)) {
        const std::vector<float> numbers(out_.size(), 0.5f);
        if (input_form(type()) == InputForm::floats) {
            std::memcpy(inputs_.data(), numbers.data(), inputs_.size());
        } else {
            kernel.quantise(numbers.data(), {reinterpret_cast<QuantisedBlock*>(inputs_.data()),
                                             numbers.size() / kQuantBlock});
        }
    }

    void run(ThreadTeam& team) {
        team.run([&](TeamMember& member) {
            for (const PackedMatrix& matrix : matrices_.all()) {
                const Tiles tiles(matrix.n_groups(), n_rows_, team.n_threads());
                member.share(tiles.size(), [&](int item) { multiply(matrix, tiles[item]); });
            }
        });
    }

  private:
    ggml_type type() const { return matrices_.all().front().type; }

    void multiply(const PackedMatrix& matrix, const Tile& tile) {
        kernel_.multiply(
            {.matrix = &matrix,
             .first_group = tile.first_unit,
             .n_groups = tile.n_units,
             .inputs = inputs_.data() + row_bytes_ * static_cast<std::size_t>(tile.first_row),
             .n_rows = tile.n_rows,
             .out = out_.data() + static_cast<std::ptrdiff_t>(tile.first_row) * kWidth,
             .stride = kWidth});
    }

    const MatmulKernel& kernel_;
    const Matrices& matrices_;
    int n_rows_;
    std::size_t row_bytes_;
    std::vector<std::byte> inputs_;
    std::vector<float> out_;
};

void compare(ThreadTeam& team, ggml_type type, int n_rows, int n_rounds) {
    const Matrices matrices(type);
    const auto kernels = matmul_kernels();
    const auto fast = kernels.first(std::max<std::size_t>(1, kernels.size() - 1));  // not the plain
    std::vector<std::unique_ptr<Rows>> rows;
    std::vector<Contestant> contestants;
    for (const MatmulKernel& kernel : fast) {
        rows.push_back(std::make_unique<Rows>(kernel, matrices, n_rows));
        contestants.push_back({std::string(to_string(kernel.isa)),
                               [&team, one = rows.back().get()] { one->run(team); }});
    }
    alternate(contestants, n_rounds);
    const double n_products = 1e-6 * kWidth * kWidth * n_rows *  // per ms: in billions a second
                              static_cast<double>(matrices.all().size());
    std::printf("%-7s %4d |", ggml_type_name(type), n_rows);
    for (const Contestant& contestant : contestants) {
        std::printf(" %8s %7.1f (%2.0f%%) %5.2f |", contestant.name.c_str(),
                    n_products / median(contestant.times_ms), 100 * spread(contestant.times_ms),
                    1 / median(relative_times(contestant, contestants.back())));
    }
    std::printf("\n");
    std::fflush(stdout);
}

void run(const Options& options) {
    std::vector<ggml_type> types;
    for (const std::string& name : options.types) {
        types.push_back(find_type(name));
    }
    ThreadTeam team(options.n_threads);
    std::printf(
        "%d threads, %d x %d: billions of multiply-adds a second (spread), and times as fast as "
        "the last\n",
        team.n_threads(), kWidth, kWidth);
    for (const ggml_type type : types) {
        for (const int n_rows : options.rows) {
            compare(team, type, n_rows, options.n_rounds);
        }
    }
}

}  // namespace
}  // namespace knap::bench

int main(int argc, char** argv) {
    CLI::App app("Speed of our kernels for products, by instruction set", "kernel_bench");
    knap::bench::Options options;
    app.add_option("--threads", options.n_threads, "threads (default: the physical cores)")
        ->check(CLI::Range(1, 1024));
    app.add_option("--types", options.types, "weight types, as ggml names them")
        ->delimiter(',')
        ->capture_default_str();
    app.add_option("--rows", options.rows, "rows of the pass")
        ->delimiter(',')
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
    app.add_option("--repeat", options.n_rounds, "runs of each")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    return knap::bench::bench_main("kernel_bench", [&] { knap::bench::run(options); });
}
