#include "tools/make_model/random_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace knap::random_weights_test {
namespace {

constexpr std::int64_t kWide = RandomWeights::kMosaicRow;

RandomTensor make_matrix(ggml_type type, std::int64_t n_in, std::int64_t n_rows) {
    return {.name = "m.weight", .type = type, .n_in = n_in, .n_rows = n_rows, .deviation = 0.5f};
}

std::vector<std::byte> rows_of(const RandomTensor& tensor,
                               std::int64_t first,
                               std::int64_t n_rows,
                               std::uint64_t seed = 0) {
    std::vector<std::byte> rows(std::size_t(n_rows) * ggml_row_size(tensor.type, tensor.n_in));
    RandomWeights(seed, {tensor}).fill_rows(tensor, first, rows);
    return rows;
}

class RandomWeightsOfWidth : public testing::TestWithParam<std::int64_t> {};

TEST_P(RandomWeightsOfWidth, DoNotDependOnHowRowsAreSplit) {
    const RandomTensor tensor = make_matrix(GGML_TYPE_Q4_0, GetParam(), 8);
    const auto all = rows_of(tensor, 0, 8);
    const auto tail = rows_of(tensor, 5, 3);
    EXPECT_EQ(std::vector(all.end() - std::ptrdiff_t(tail.size()), all.end()), tail);
}

TEST_P(RandomWeightsOfWidth, DifferBetweenRows) {
    const RandomTensor tensor = make_matrix(GGML_TYPE_Q4_0, GetParam(), 1000);
    const std::size_t row_bytes = ggml_row_size(tensor.type, tensor.n_in);
    const auto all = rows_of(tensor, 0, 1000);
    std::set<std::string> rows;
    for (std::size_t at = 0; at < all.size(); at += row_bytes) {
        rows.emplace(reinterpret_cast<const char*>(&all[at]), row_bytes);
    }
    EXPECT_EQ(rows.size(), 1000u);
}

TEST_P(RandomWeightsOfWidth, HaveTheDeclaredDeviation) {
    const RandomTensor tensor = make_matrix(GGML_TYPE_F32, GetParam(), 64);
    const auto bytes = rows_of(tensor, 0, 64);
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    double squares = 0;
    for (const float value : values) {
        squares += double(value) * value;
    }
    EXPECT_NEAR(std::sqrt(squares / double(values.size())), 0.5, 0.02);
}

TEST_P(RandomWeightsOfWidth, ChangeWithSeedAndName) {
    RandomTensor tensor = make_matrix(GGML_TYPE_Q8_0, GetParam(), 2);
    const auto rows = rows_of(tensor, 0, 2);
    EXPECT_NE(rows_of(tensor, 0, 2, /*seed=*/1), rows);
    tensor.name = "n.weight";
    EXPECT_NE(rows_of(tensor, 0, 2), rows);
}

INSTANTIATE_TEST_SUITE_P(PlainAndMosaic, RandomWeightsOfWidth, testing::Values(64, kWide));

TEST(RandomWeights, FixedValuesAreStoredUnchanged) {
    const RandomTensor tensor{.name = "rope_freqs.weight", .n_in = 3, .values = {1.0f, 2.5f, 8.0f}};
    const auto bytes = rows_of(tensor, 0, 1);
    float values[3];
    ASSERT_EQ(bytes.size(), sizeof values);
    std::memcpy(values, bytes.data(), sizeof values);
    EXPECT_EQ(values[0], 1.0f);
    EXPECT_EQ(values[1], 2.5f);
    EXPECT_EQ(values[2], 8.0f);
}

TEST(RandomWeights, Llama3ShapesCarryTheirRopeDivisors) {
    const ModelShape& shape = find_shape("llama-3.1-8b");
    const auto tensors =
        declare_random_tensors(shape, parse_weight_recipe("Q4_0", "", shape.has_tied_head));
    const auto found = std::find_if(tensors.begin(), tensors.end(), [](const RandomTensor& tensor) {
        return tensor.name == "rope_freqs.weight";
    });
    ASSERT_NE(found, tensors.end());
    EXPECT_EQ(found->type, GGML_TYPE_F32);
    EXPECT_EQ(found->n_in, 64);
    EXPECT_EQ(found->values, rope_frequency_divisors(shape));
}

}  // namespace
}  // namespace knap::random_weights_test
