// Rounds on the CUDA kernels: whatever the device chooses by itself, the text is that of plain
// decoding with whole rows of logits.
#include <filesystem>
#include <fstream>
#include <functional>
#include <ostream>
#include <string>

#include "ggml-cpp.h"
#include "gguf.h"

#include <gtest/gtest.h>

#include "decode/round.h"
#include "support/strip_model.h"
#include "support/tiny_model.h"

namespace knap::test::cuda_round_gpu_test {
namespace {

constexpr int kContext = 30;
constexpr int kTokens = 60;

struct Decoded {
    std::vector<Token> tokens;
    int n_accepted = 0;
    int n_guessed = 0;
    std::size_t bytes_read = 0;
};

struct RoundCase {
    const char* name;
    SamplingOptions sampling;
    bool reads_rows = false;  // the device cannot say what the host would choose
};

void PrintTo(const RoundCase& c, std::ostream* out) {
    *out << c.name;
}

using Propose = std::function<Proposal(std::span<const Token> history)>;

Decoded decode(const StripModel& model,
               const SamplingOptions& sampling,
               bool keeps_logits,
               const Propose& propose) {
    const DeviceModels devices = model.device_models();
    SingleSequence single(model.config(), devices, 256, 64);
    Sampler sampler(sampling, model.config().n_vocab, 256);
    std::vector<Token> history = random_tokens(kContext, model.config().n_vocab, 7);
    for (const Token token : history) {
        sampler.accept(token);
    }
    single.forward().run({.tokens = std::span(history).first(kContext - 1), .first_row = 0});
    single.sequence().commit(kContext - 1);
    Round round(single.forward(), single.sequence(), sampler,
                {.acceptance = {.measures_gaps = true},
                 .is_end_of_text = [](Token) { return false; },
                 .max_rows = 16,
                 .keeps_logits = keeps_logits});
    Decoded decoded;
    const std::size_t before = single.forward().statistics().bytes_read;
    while (decoded.tokens.size() < kTokens) {
        const auto outcome = round.run(history.back(), propose(history));
        for (const Token token : outcome->emitted) {
            sampler.accept(token);
            history.push_back(token);
            decoded.tokens.push_back(token);
        }
        decoded.n_accepted += static_cast<int>(outcome->path.size());
        decoded.n_guessed += outcome->n_guessed;
    }
    decoded.tokens.resize(kTokens);
    decoded.bytes_read = single.forward().statistics().bytes_read - before;
    return decoded;
}

Proposal plain(std::span<const Token>) {
    return {};
}

class RoundsOfTheKernels : public ::testing::TestWithParam<RoundCase> {};

TEST_P(RoundsOfTheKernels, WriteThePlainText) {
    KNAP_SKIP_WITHOUT_STRIPS();
    const StripModel model(tiny_model("small-llama", "Q8_0"));
    const SamplingOptions& sampling = GetParam().sampling;
    const Decoded expected = decode(model, sampling, true, plain);
    const Decoded by_best = decode(model, sampling, false, plain);
    EXPECT_EQ(by_best.tokens, expected.tokens);
    EXPECT_EQ(by_best.bytes_read == expected.bytes_read, GetParam().reads_rows);

    ModulePlan plan(model.config().n_layers);
    plan.set(3, Module::mlp, Level::skip);
    const DraftWithPlan draft{.plan = &plan, .stop = {.n_max = 5}};
    const Decoded chained =
        decode(model, sampling, false, [&](std::span<const Token>) { return Proposal{draft}; });
    EXPECT_EQ(chained.tokens, expected.tokens);
    EXPECT_GT(chained.n_accepted, 0);

    // The text that will be, as a guess, and now and then another token in it.
    std::vector<Token> guess;
    const auto guessing = [&](std::span<const Token> history) {
        const std::size_t n_written = history.size() - kContext;
        const auto rest =
            std::span(expected.tokens).subspan(std::min(n_written, expected.tokens.size()));
        guess.assign(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(
                                                      std::min<std::size_t>(3, rest.size())));
        if (n_written % 3 == 0 && !guess.empty()) {
            guess.back() = (guess.back() + 1) % model.config().n_vocab;
        }
        DraftWithPlan with_guess = draft;
        with_guess.guess = guess;
        return Proposal{with_guess};
    };
    const Decoded guessed = decode(model, sampling, false, guessing);
    EXPECT_EQ(guessed.tokens, expected.tokens);
    EXPECT_GT(guessed.n_guessed, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Samplings,
    RoundsOfTheKernels,
    ::testing::Values(
        RoundCase{"Greedy", {.temperature = 0}},
        RoundCase{"Defaults", {.temperature = 0.5f, .seed = 2}},
        RoundCase{"TopK", {.temperature = 1, .top_k = 100, .top_p = 1, .min_p = 0, .seed = 3}},
        RoundCase{"NoTopK", {.temperature = 0.5f, .top_k = 0, .seed = 4}, true},
        RoundCase{"LargeTopK", {.temperature = 0.5f, .top_k = 200, .seed = 5}, true},
        RoundCase{"Penalties", {.temperature = 0.5f, .repeat_penalty = 1.2f, .seed = 6}, true},
        RoundCase{"Bias", {.temperature = 0, .logit_bias = {{3, 2.0f}}}, true}),
    [](const auto& param) { return std::string(param.param.name); });

// A model whose logits are all 0: its output norm is.
std::filesystem::path model_of_ties() {
    const auto path = temporary_folder() / "ties.gguf";
    std::filesystem::copy_file(tiny_model("small-llama", "Q8_0"), path);
    const gguf_context_ptr file(gguf_init_from_file(path.c_str(), {true, nullptr}));
    const auto norm = gguf_find_tensor(file.get(), "output_norm.weight");
    const std::vector<char> zeros(gguf_get_tensor_size(file.get(), norm));
    std::fstream bytes(path, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(static_cast<std::streamoff>(gguf_get_data_offset(file.get()) +
                                            gguf_get_tensor_offset(file.get(), norm)));
    bytes.write(zeros.data(), static_cast<std::streamsize>(zeros.size()));
    return path;
}

// More tokens tie than a list has room for: the rows come over after all.
TEST(RoundsWithTies, WriteThePlainText) {
    KNAP_SKIP_WITHOUT_STRIPS();
    const StripModel model(model_of_ties());
    for (const float temperature : {0.0f, 1.0f}) {
        const SamplingOptions sampling{.temperature = temperature, .top_k = 5, .seed = 1};
        const Decoded expected = decode(model, sampling, true, plain);
        const Decoded decoded = decode(model, sampling, false, plain);
        EXPECT_EQ(decoded.tokens, expected.tokens);
        EXPECT_GT(decoded.bytes_read, expected.bytes_read);
    }
}

}  // namespace
}  // namespace knap::test::cuda_round_gpu_test
