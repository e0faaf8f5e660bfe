// The prompts of batch_bench: from a file, cut from the built-in texts, or random tokens.
#pragma once

#include <algorithm>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "knap/knap.h"

#include "base/error.h"
#include "base/text.h"
#include "bench/batch/settings.h"
#include "cli/bench/builtin_texts.h"
#include "tools/measure/prompt_data.h"
#include "tools/measure/prompt_fit.h"

namespace knap::bench {

using Prompt = std::vector<Token>;

class BatchPrompts {
  public:
    // Lengths are drawn between the shortest and the longest, from a fixed seed.
    BatchPrompts(const Engine& engine, const BatchSettings& settings)
        : settings_(settings), n_vocab_(engine.info().n_vocab) {
        if (settings.prompts == "random") {
            return;
        }
        if (settings.prompts == "built-in") {
            add_pieces(engine, "Summarise this passage.", builtin_document(), "Summary:");
            add_pieces(engine, "Read this source code.", builtin_source(), "What does it do?");
            std::ranges::shuffle(prompts_, random_);
        } else {
            add_file(engine);
        }
        if (prompts_.empty()) {
            fail("--prompts: expected prompts of ", settings.shortest, " tokens or more in ",
                 settings.prompts, ", found none");
        }
    }

    // The next prompts; begins again after the last one.
    std::vector<Prompt> next(int n) {
        std::vector<Prompt> prompts;
        for (int i = 0; i < n; ++i) {
            prompts.push_back(prompts_.empty() ? random(length())
                                               : prompts_[n_taken_++ % prompts_.size()]);
        }
        return prompts;
    }

    // Never the same twice.
    Prompt random(int n_tokens) {
        Prompt tokens;
        for (int i = 0; i < n_tokens; ++i) {
            tokens.push_back(static_cast<Token>(random_() % static_cast<unsigned>(n_vocab_)));
        }
        return tokens;
    }

  private:
    int length() {
        return std::uniform_int_distribution(settings_.shortest, settings_.longest)(random_);
    }

    // Cuts the text into prompts of their own.
    void add_pieces(const Engine& engine,
                    const std::string& before,
                    std::string_view text,
                    const std::string& after) {
        // More than fits, because fit_prompt() cuts to the number of tokens.
        const std::size_t n_bytes = 8 * static_cast<std::size_t>(settings_.longest);
        for (std::size_t at = 0; at + n_bytes <= text.size(); at += n_bytes) {
            add(engine, concat(before, "\n\n", text.substr(at, n_bytes), "\n\n", after));
        }
    }

    void add_file(const Engine& engine) {
        for (const DataPrompt& prompt : read_prompt_source(settings_.prompts, 0).prompts) {
            add(engine, prompt.text);
        }
    }

    void add(const Engine& engine, const std::string& text) {
        Prompt tokens = fit_prompt(engine, text, static_cast<std::size_t>(length())).tokens;
        if (tokens.size() >= static_cast<std::size_t>(settings_.shortest)) {
            prompts_.push_back(std::move(tokens));
        }
    }

    BatchSettings settings_;
    int n_vocab_;
    std::mt19937 random_{1};
    std::vector<Prompt> prompts_;  // empty: random
    std::size_t n_taken_ = 0;
};

}  // namespace knap::bench
