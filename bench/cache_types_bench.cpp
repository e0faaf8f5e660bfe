// How does a smaller cache affect the prediction of real text? Computes the mean of -log p(token)
// over the same documents with each cache type, and the ratio of the perplexities with its 95 %
// interval.
//
//     cache_types_bench MODEL FILE.jsonl... [--tokens N] [--limit N]
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "knap/knap.h"

#include "bench_main.h"
#include "forward/forward.h"
#include "runtime/session_impl.h"
#include "search/row_numbers.h"
#include "tools/measure/prompt_data.h"
#include "tools/measure/statistics.h"

namespace knap::bench {
namespace {

struct CacheChoice {
    const char* name;
    CacheType type;
};

constexpr std::array kChoices{CacheChoice{"f16", CacheType::f16},
                              CacheChoice{"q8_0", CacheType::q8_0}};
// Rows per pass. Every row yields logits for the whole vocabulary.
constexpr std::size_t kRows = 64;

double negative_log_likelihood(std::span<const float> logits, Token token) {
    const double largest = static_cast<double>(*std::ranges::max_element(logits));
    double sum = 0;
    for (const float logit : logits) {
        sum += std::exp(static_cast<double>(logit) - largest);
    }
    return largest + std::log(sum) - static_cast<double>(logits[static_cast<std::size_t>(token)]);
}

// The sum over all tokens of the text but the first.
double score(Session::Impl& session, std::span<const Token> text) {
    const std::vector<int> rows = row_numbers(static_cast<int>(kRows));
    double sum = 0;
    session.cache.truncate(0);
    for (std::size_t first = 0; first + 1 < text.size(); first += kRows) {
        const std::size_t count = std::min(kRows, text.size() - 1 - first);
        const ForwardResult result = session.forward.run({
            .tokens = text.subspan(first, count),
            .first_row = static_cast<int>(first),
            .logit_rows = std::span(rows).first(count),
        });
        session.cache.commit(static_cast<int>(first + count));
        const std::size_t n_vocab = result.logits.size() / count;
        for (std::size_t i = 0; i < count; ++i) {
            sum += negative_log_likelihood(result.logits.subspan(i * n_vocab, n_vocab),
                                           text[first + i + 1]);
        }
    }
    return sum;
}

struct Text {
    std::vector<Token> tokens;
    std::array<double, kChoices.size()> loss{};  // summed
};

std::vector<Text> read_texts(const Engine& engine,
                             const std::vector<std::string>& files,
                             int limit,
                             std::size_t n_tokens) {
    std::vector<Text> texts;
    for (const std::string& file : files) {
        for (const DataPrompt& prompt : read_prompt_source(file, limit).prompts) {
            std::vector<Token> tokens = engine.tokenize(prompt.text);
            tokens.resize(std::min(tokens.size(), n_tokens));
            texts.push_back({.tokens = std::move(tokens)});
        }
    }
    return texts;
}

RuntimeConfig config_for(const std::string& model, CacheType type, std::size_t n_tokens) {
    return {.model_path = model,
            .n_ctx = static_cast<int>(n_tokens),
            .cache_type_k = type,
            .cache_type_v = type,
            .profile = "none"};
}

void print(const std::vector<Text>& texts) {
    double n_tokens = 0;
    std::array<double, kChoices.size()> sums{};
    std::vector<double> ratios;  // of perplexities, text by text
    for (const Text& text : texts) {
        const auto n = static_cast<double>(text.tokens.size() - 1);
        n_tokens += n;
        for (std::size_t i = 0; i < sums.size(); ++i) {
            sums[i] += text.loss[i];
        }
        ratios.push_back(std::exp((text.loss[1] - text.loss[0]) / n));
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
        std::printf("%-5s %.4f nats per token over %.0f tokens of %zu texts\n", kChoices[i].name,
                    sums[i] / n_tokens, n_tokens, texts.size());
    }
    const Interval ratio = geometric_mean(ratios);
    std::printf("perplexity with q8_0 / with f16: %.5f (95 %% interval %.5f to %.5f)\n", ratio.mean,
                ratio.low, ratio.high);
}

void run(const std::string& model,
         const std::vector<std::string>& files,
         int limit,
         std::size_t n_tokens) {
    std::vector<Text> texts;
    for (std::size_t i = 0; i < kChoices.size(); ++i) {
        Engine engine(config_for(model, kChoices[i].type, n_tokens));
        if (texts.empty()) {
            texts = read_texts(engine, files, limit, n_tokens);
        }
        Session::Impl session(impl_of(engine));
        for (Text& text : texts) {
            text.loss[i] = score(session, text.tokens);
        }
    }
    print(texts);
}

}  // namespace
}  // namespace knap::bench

int main(int argc, char** argv) {
    CLI::App app("The effect of an 8-bit cache on the likelihood of texts", "cache_types_bench");
    std::string model;
    std::vector<std::string> files;
    int limit = 4;
    std::size_t n_tokens = 2048;
    app.add_option("MODEL", model, "a model in GGUF format")->required();
    app.add_option("FILE", files, "texts, one JSON object per line")->required();
    app.add_option("--limit", limit, "maximum number of texts per file")
        ->check(CLI::Range(1, 1000));
    app.add_option("--tokens", n_tokens, "maximum number of tokens per text")
        ->check(CLI::Range(2, 131072));
    CLI11_PARSE(app, argc, argv);
    return knap::bench::bench_main("cache_types_bench",
                                   [&] { knap::bench::run(model, files, limit, n_tokens); });
}
