// Passes with the CUDA kernels: against the CPU, and against themselves bit for bit.
#include <cmath>
#include <numeric>
#include <ostream>

#include <gtest/gtest.h>

#include "support/rounding_error.h"
#include "support/strip_model.h"
#include "support/tiny_model.h"

namespace knap::test::cuda_stage_gpu_test {
namespace {

using Rows = std::vector<std::vector<float>>;
using Kind = AttentionLayout::Kind;

struct ModelCase {
    const char* shape;
    const char* type;
};

void PrintTo(const ModelCase& c, std::ostream* out) {
    *out << c.shape << '/' << c.type;
}

// Logits of all rows.
Rows logits_of(Forward& forward, ForwardRequest request) {
    std::vector<int> rows(static_cast<std::size_t>(count_rows(request, forward.config())));
    std::iota(rows.begin(), rows.end(), 0);
    request.logit_rows = rows;
    const ForwardResult result = forward.run(request);
    const auto n_vocab = static_cast<std::size_t>(forward.config().n_vocab);
    Rows logits;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto row = result.logits.subspan(i * n_vocab, n_vocab);
        logits.emplace_back(row.begin(), row.end());
    }
    return logits;
}

// A text that is read in passes of so many rows.
Rows read(SingleSequence& sequence, std::span<const Token> text, int n_rows) {
    Rows logits;
    for (int at = 0; at < static_cast<int>(text.size()); at += n_rows) {
        const auto part = text.subspan(
            static_cast<std::size_t>(at),
            std::min(static_cast<std::size_t>(n_rows), text.size() - static_cast<std::size_t>(at)));
        const Rows rows = logits_of(sequence.forward(), {.tokens = part, .first_row = at});
        logits.insert(logits.end(), rows.begin(), rows.end());
        sequence.sequence().commit(at + static_cast<int>(part.size()));
    }
    return logits;
}

class CudaStageTest : public ::testing::TestWithParam<ModelCase> {};

TEST_P(CudaStageTest, ReadsATextAsTheCpuDoes) {
    KNAP_SKIP_WITHOUT_STRIPS();
    StripModel model(tiny_model(GetParam().shape, GetParam().type));
    const DeviceModels devices = model.device_models();
    const auto text = random_tokens(300, model.config().n_vocab, 1);
    ForwardRig cpu(model.host(), {.path = AttentionPath::folded});
    const Rows expected = cpu.feed(text);
    const double bound = 3 * rounding_error(model.host(), text, Factors::as_stored).relative +
                         8 * rounding_error(model.host(), text, Factors::f16).relative;
    for (const int n_rows : {1, 3, 8, 16, 300}) {
        SingleSequence sequence(model.config(), devices, 1024, 512);
        const Rows logits = read(sequence, text, n_rows);
        EXPECT_LE(difference(logits, expected).relative, bound) << n_rows << " rows at once";
    }
}

TEST_P(CudaStageTest, RowsHaveTheirBitsInPassesOfAnySize) {
    KNAP_SKIP_WITHOUT_STRIPS();
    StripModel model(tiny_model(GetParam().shape, GetParam().type));
    const DeviceModels devices = model.device_models();
    const auto text = random_tokens(530, model.config().n_vocab, 2);
    SingleSequence single(model.config(), devices, 1024, 512);
    const Rows alone = read(single, text, 1);
    for (const int n_rows : {2, 5, 8, 11, 16, 17, 100, 512}) {
        SingleSequence sequence(model.config(), devices, 1024, 512);
        const Rows together = read(sequence, text, n_rows);
        std::size_t row = 0;
        while (row < alone.size() && together[row] == alone[row]) {
            ++row;
        }
        EXPECT_EQ(row, alone.size()) << n_rows << " rows at once";
    }
}

INSTANTIATE_TEST_SUITE_P(Models,
                         CudaStageTest,
                         ::testing::Values(ModelCase{"small-llama", "Q4_0"},
                                           ModelCase{"small-llama", "Q4_1"},
                                           ModelCase{"small-llama", "Q5_0"},
                                           ModelCase{"small-llama", "Q8_0"},
                                           ModelCase{"small-llama", "Q4_K"},
                                           ModelCase{"small-llama", "Q5_K"},
                                           ModelCase{"small-llama", "Q6_K"},
                                           ModelCase{"small-llama", "MXFP4"},
                                           ModelCase{"small-llama", "F16"},
                                           ModelCase{"small-llama", "BF16"},
                                           ModelCase{"small-qwen3", "Q4_K"},
                                           ModelCase{"small-qwen3", "Q8_0"}));

}  // namespace
}  // namespace knap::test::cuda_stage_gpu_test
