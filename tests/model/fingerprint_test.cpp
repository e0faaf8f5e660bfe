#include "model/fingerprint.h"

#include <gtest/gtest.h>

#include "model/gguf/gguf_file.h"
#include "model/tensor_table.h"
#include "support/tiny_model.h"

namespace knap::test::fingerprint_test {
namespace {

std::uint64_t of_context(std::string_view shape, int n_ctx) {
    const GgufFile file = GgufFile::open(tiny_model(shape, "Q8_0"));
    return fingerprint(file, unused_factors(read_config(file), n_ctx));
}

TEST(Fingerprint, DiffersBetweenModels) {
    EXPECT_NE(fingerprint(GgufFile::open(tiny_model("tiny-llama", "Q8_0"))),
              fingerprint(GgufFile::open(tiny_model("tiny-llama", "Q8_0", 1))));
}

// The rows of a prompt cache are rotated: what was saved with other divisors must not be read.
TEST(Fingerprint, DependsOnTheContextThatChoosesDivisors) {
    EXPECT_EQ(of_context("tiny-phi", 512), of_context("tiny-phi", 100));
    EXPECT_EQ(of_context("tiny-phi", 513), of_context("tiny-phi", 1024));
    EXPECT_EQ(of_context("tiny-phi", 513), of_context("tiny-phi", 0));
    EXPECT_NE(of_context("tiny-phi", 512), of_context("tiny-phi", 513));
    EXPECT_EQ(of_context("tiny-llama", 512), of_context("tiny-llama", 1024));
}

}  // namespace
}  // namespace knap::test::fingerprint_test
