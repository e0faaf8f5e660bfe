// What copies of earlier text save, and what looking for them costs.
//
// - Time and memory of the index by the length of the text.
// - Passes: texts are known, from plain decoding or written for this purpose (agentic_texts.h), and
//   the rounds that would have written them are counted (copy_simulation.h), with copies as the
//   strategy `knapspec` rates them where a further row costs a given share of a step, and with
//   lookup.
//
//     copies_bench MODEL [DATA.jsonl[:TASK][@TOKENS]...] [--limit N] [--tokens N] [--temperature T]
#include <array>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "knap/knap.h"

#include "bench_main.h"
#include "cells.h"
#include "copies/agentic_texts.h"
#include "copies/copy_simulation.h"
#include "decode/knapspec/copy_drafts.h"
#include "decode/knapspec/source_rating.h"
#include "decode/lookup/lookup_source.h"
#include "tools/measure/prompt_data.h"
#include "tools/measure/prompt_fit.h"

namespace knap::bench {
namespace {

using Tokens = std::vector<Token>;

struct Settings {
    std::string model;
    std::vector<std::string> sources;
    int limit = 2;
    int n_tokens = 256;
    float temperature = 0;
};

constexpr int kContext = 8192;
constexpr int kMaxCopy = 32;
constexpr int kLookupDraft = 10;
constexpr double kMargin = 1.03;
constexpr std::array kRowPrices{0.03, 0.1, 0.23};

// One answer, and what was known before it.
struct KnownAnswer {
    Tokens prompt;
    Tokens answer;
    std::vector<Tokens> references{};
    Tokens prediction{};

    RequestStart start(float temperature) const {
        return {.prompt = prompt,
                .sampling = {.temperature = temperature},
                .references = references,
                .prediction = prediction};
    }
};

struct KnownTexts {
    std::string name;
    std::vector<KnownAnswer> answers;
    bool is_session = false;  // what is learned stays from answer to answer
};

Tokens joined(const KnownAnswer& known) {
    Tokens text = known.prompt;
    text.insert(text.end(), known.answer.begin(), known.answer.end());
    return text;
}

CopyCounts count_lookups(const KnownAnswer& known) {
    LookupSource source;
    source.begin(known.prompt, known.references, known.prediction);
    return simulate_copies(joined(known), known.prompt.size(), kLookupDraft,
                           [&](std::span<const Token> history, int max_nodes) {
                               std::vector<CopyNode> chain;
                               for (const Token token : source.find(history, max_nodes).tokens) {
                                   const int parent = static_cast<int>(chain.size()) - 1;
                                   chain.push_back({.token = token, .parent = parent});
                               }
                               return chain;
                           });
}

RoundCost cost_of(double row_price) {
    RoundCost cost;
    for (int n_nodes = 0; n_nodes <= kMaxCopy; ++n_nodes) {
        cost.verify_ms.push_back(1 + row_price * n_nodes);
    }
    return cost;
}

CopyCounts count_copies(CopyDrafts& copies,
                        const KnownAnswer& known,
                        float temperature,
                        double row_price) {
    const RoundCost cost = cost_of(row_price);
    copies.begin(known.start(temperature));
    return simulate_copies(
        joined(known), known.prompt.size(), kMaxCopy,
        [&](std::span<const Token> history, int max_nodes) {
            copies.follow(history);
            std::vector<CopyNode> copy = copies.offer(max_nodes);
            std::vector<double> reached;
            for (const CopyNode& node : copy) {
                reached.push_back(node.reached);
            }
            const SourceRating rating = rate_copy(reached, cost, max_nodes, kMargin);
            copy.resize(rating.surplus(kMargin) > 0 ? static_cast<std::size_t>(rating.length) : 0);
            return copy;
        });
}

void print_counts(const char* name, double row_price, const CopyCounts& counts) {
    std::printf("  %-8s %.2f  %6.2f tokens per pass, %5d of %5d rows accepted, speed %.3f\n", name,
                row_price, counts.tokens_per_pass(), counts.n_accepted, counts.n_rows,
                counts.speed(row_price));
}

void count(const KnownTexts& texts, float temperature) {
    std::printf("%s: %zu answers\n", texts.name.c_str(), texts.answers.size());
    for (const double row_price : kRowPrices) {
        CopyCounts lookups;
        for (const KnownAnswer& known : texts.answers) {
            lookups += count_lookups(known);
        }
        print_counts("lookup", row_price, lookups);
        for (const bool may_branch : {false, true}) {
            CopyCounts counts;
            CopyDrafts copies(may_branch);
            for (const KnownAnswer& known : texts.answers) {
                if (!texts.is_session) {
                    copies = CopyDrafts(may_branch);
                }
                counts += count_copies(copies, known, temperature, row_price);
            }
            print_counts(may_branch ? "trees" : "chains", row_price, counts);
        }
    }
    std::fflush(stdout);
}

KnownTexts tokenized(const Engine& engine,
                     const char* name,
                     const std::vector<TextRequest>& requests) {
    KnownTexts texts{.name = name, .answers = {}, .is_session = true};
    for (const TextRequest& request : requests) {
        texts.answers.push_back({.prompt = engine.tokenize(request.prompt, /*add_bos=*/false),
                                 .answer = engine.tokenize(request.answer, /*add_bos=*/false)});
    }
    return texts;
}

// With earlier answers as references, as the server keeps them.
KnownTexts remembering(KnownTexts texts) {
    texts.name += ", earlier answers as references";
    std::vector<Tokens> earlier;
    for (KnownAnswer& known : texts.answers) {
        known.references = earlier;
        earlier.push_back(known.answer);
    }
    return texts;
}

// With the answer before as the prediction.
KnownTexts predicting(KnownTexts texts) {
    texts.name += ", the last answer as prediction";
    for (std::size_t i = 1; i < texts.answers.size(); ++i) {
        texts.answers[i].prediction = texts.answers[i - 1].answer;
    }
    return texts;
}

KnownTexts decoded(Engine& engine, const Settings& settings, const Cell& cell) {
    KnownTexts texts{.name = cell.name, .answers = {}};
    for (const DataPrompt& prompt : read_prompt_source(cell.source, settings.limit).prompts) {
        const auto n_fit = static_cast<std::size_t>(kContext - settings.n_tokens);
        const std::size_t n_max = cell.max_tokens > 0 ? std::min(n_fit, cell.max_tokens) : n_fit;
        Session session(engine);
        GenerateOptions how;
        how.n_predict = settings.n_tokens;
        how.sampling.temperature = settings.temperature;
        how.speculation = plain_decoding();
        const Tokens tokens = fit_prompt(engine, prompt.text, n_max).tokens;
        const Result plain = session.generate(tokens, how);
        KnownAnswer known{.prompt = tokens, .answer = plain.tokens};
        if (known.answer.size() > 1) {
            texts.answers.push_back(std::move(known));
        }
    }
    return texts;
}

// `n_tokens` in which runs of some length repeat, as in ordinary text.
Tokens repetitive_text(std::size_t n_tokens) {
    Tokens text;
    std::uint64_t state = 7;
    const auto below = [&](std::size_t n) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        return static_cast<std::size_t>(state >> 33) % n;
    };
    while (text.size() < n_tokens) {
        if (text.size() > 100 && below(2) == 0) {
            const std::size_t from = below(text.size() - 20);
            for (std::size_t i = 0; i < 12; ++i) {
                text.push_back(text[from + i]);
            }
        } else {
            text.push_back(static_cast<Token>(below(1 + below(20000))));
        }
    }
    text.resize(n_tokens);
    return text;
}

// Microseconds of this program's processor time, so that other programs do not count.
template <typename Work>
double processor_us(const Work& work) {
    const std::clock_t start = std::clock();
    work();
    return 1e6 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

// Reading a prompt; following an answer; and the same with an offer before every token.
void time_index(const char* kind, const Tokens& text) {
    const std::size_t n_prompt = text.size() - text.size() / 8;
    const std::span all(text);
    const auto follow = [&](CopyDrafts& copies, bool offers) {
        for (std::size_t n = n_prompt + 1; n <= text.size(); ++n) {
            copies.follow(all.first(n));
            if (offers) {
                copies.offer(kMaxCopy);
            }
        }
    };
    CopyDrafts copies(/*may_branch=*/true);
    CopyDrafts others(/*may_branch=*/true);
    const double prompt_us = processor_us([&] { copies.begin({.prompt = all.first(n_prompt)}); });
    others.begin({.prompt = all.first(n_prompt)});
    const double follow_us = processor_us([&] { follow(copies, false); });
    const double offer_us = processor_us([&] { follow(others, true); }) - follow_us;
    const auto n_answer = static_cast<double>(text.size() - n_prompt);
    CopiedTexts texts;
    texts.begin(text);
    std::printf(
        "%-10s %6zu tokens: prompt %.2f us a token, answer %.2f us a token, offer %.2f us, %.1f "
        "bytes a token\n",
        kind, text.size(), prompt_us / static_cast<double>(n_prompt), follow_us / n_answer,
        offer_us / n_answer,
        static_cast<double>(texts.n_bytes()) / static_cast<double>(text.size()));
}

void run(const Settings& settings) {
    for (const std::size_t n_tokens : {std::size_t{1000}, std::size_t{8000}, std::size_t{64000}}) {
        time_index("repetitive", repetitive_text(n_tokens));
        time_index("loop", Tokens(n_tokens, 5));
    }
    Engine engine({.model_path = settings.model, .n_ctx = kContext});
    const KnownTexts edits = tokenized(engine, "edits of one file", edit_one_file());
    const KnownTexts forms = tokenized(engine, "forms of JSON", fill_forms());
    for (const KnownTexts& texts : {edits, predicting(edits), forms, remembering(forms)}) {
        count(texts, settings.temperature);
    }
    for (const std::string& source : settings.sources) {
        count(decoded(engine, settings, parse_cell(source)), settings.temperature);
    }
}

}  // namespace
}  // namespace knap::bench

int main(int argc, char** argv) {
    knap::bench::Settings settings;
    CLI::App app("Passes that copies of earlier text save", "copies_bench");
    app.add_option("MODEL", settings.model)->required();
    app.add_option("DATA.jsonl[:TASK][@TOKENS]", settings.sources);
    app.add_option("--limit", settings.limit, "prompts per cell")->check(CLI::PositiveNumber);
    app.add_option("--tokens", settings.n_tokens, "tokens to generate")
        ->check(CLI::Range(2, knap::bench::kContext / 2));
    app.add_option("--temperature", settings.temperature, "0: greedy")->check(CLI::Range(0.0, 2.0));
    CLI11_PARSE(app, argc, argv);
    return knap::bench::bench_main("copies_bench", [&] { knap::bench::run(settings); });
}
