#include "cli/bench/prompts.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/error.h"
#include "base/log.h"
#include "cli/bench/builtin_texts.h"
#include "cli/check/prompts.h"
#include "tools/measure/prompt_fit.h"

namespace knap {
namespace {

constexpr int kAnyLength = std::numeric_limits<int>::max();
// The built-in texts are cut to each of these lengths below the longest prompt.
constexpr int kLengths[] = {64, 256, 1024, 4096, 16384, 65536};

DataPrompt document_prompt() {
    return {.id = "document",
            .task = "summarisation",
            .text = concat("Summarise this document in a few sentences.\n\n", builtin_document(),
                           "\n\nSummary:")};
}

DataPrompt source_prompt() {
    return {.id = "source",
            .task = "code",
            .text = concat("Read the source code of this program.\n\n", builtin_source(),
                           "\n\nWhat does it do, function by function?")};
}

}  // namespace

void log_skipped(const SkippedPrompt& prompt) {
    log_warning(prompt.where, ": ", prompt.why, "; the prompt is skipped");
}

std::vector<BenchData> read_bench_data(const std::vector<std::string>& sources,
                                       int limit,
                                       int skip) {
    std::vector<BenchData> all;
    std::map<std::string, std::filesystem::path> files;
    for (const std::string& source : sources) {
        const std::filesystem::path path = file_of_source(source);
        const std::string name = path.filename().string();
        if (files.try_emplace(name, path).first->second != path) {
            fail("--data: expected files of different names, found ", files[name].string(), " and ",
                 path.string());
        }
        all.push_back({.name = name, .content = read_prompt_source(source, limit, skip)});
    }
    return all;
}

BenchPromptCollector::BenchPromptCollector(const Engine& engine,
                                           int n_predict,
                                           int max_prompt_tokens)
    : engine_(engine),
      n_room_(engine.config().n_ctx - n_predict),
      n_longest_(max_prompt_tokens > 0 ? std::min(max_prompt_tokens, n_room_) : n_room_),
      is_cutting_(max_prompt_tokens > 0) {
    if (n_room_ < 1) {
        fail("-n: expected fewer tokens than the context of ", engine.config().n_ctx, ", found ",
             n_predict);
    }
}

void BenchPromptCollector::skip(const std::string& where, const std::string& why) {
    collected_.skipped.push_back({where, why});
    log_skipped(collected_.skipped.back());
}

// A prompt that was given twice, as with FILE and FILE:TASK, is measured once.
void BenchPromptCollector::add(BenchPrompt prompt) {
    const bool is_new = std::ranges::none_of(collected_.prompts, [&](const BenchPrompt& other) {
        return other.data == prompt.data && other.id == prompt.id && other.depth == prompt.depth;
    });
    if (is_new) {
        collected_.prompts.push_back(std::move(prompt));
    }
}

bool BenchPromptCollector::add_text(const std::string& data, const DataPrompt& prompt, int n_max) {
    const std::string where = prompt.where.empty() ? concat(data, ": ", prompt.id) : prompt.where;
    try {
        FittedPrompt fitted = fit_prompt(engine_, prompt.text, static_cast<std::size_t>(n_max));
        const bool is_whole = !fitted.is_cut();
        if (fitted.tokens.size() > static_cast<std::size_t>(n_room_)) {
            fail("expected at most ", n_room_, " tokens, so that an answer fits the context of ",
                 engine_.config().n_ctx, ", found ", fitted.tokens.size());
        }
        add({.data = data,
             .id = prompt.id,
             .task = prompt.task,
             .tokens = std::move(fitted.tokens),
             .n_document_tokens = fitted.n_document_tokens,
             .where = prompt.where});
        return is_whole;
    } catch (const Error& error) {
        skip(where, error.what());
        return false;
    }
}

void BenchPromptCollector::add_data(const BenchData& data) {
    std::ranges::copy(data.content.skipped, std::back_inserter(collected_.skipped));
    for (const DataPrompt& prompt : data.content.prompts) {
        add_text(data.name, prompt, is_cutting_ ? n_longest_ : kAnyLength);
    }
}

// Stops at the first length that holds the whole text: longer prompts would equal it.
void BenchPromptCollector::add_lengths(const DataPrompt& prompt) {
    std::vector<int> lengths(std::begin(kLengths), std::end(kLengths));
    std::erase_if(lengths, [this](int length) { return length >= n_longest_; });
    lengths.push_back(n_longest_);
    for (const int length : lengths) {
        DataPrompt cut = prompt;
        cut.id += concat("-", length);
        if (add_text(kBuiltinData, cut, length)) {
            return;
        }
    }
}

void BenchPromptCollector::add_builtin(int limit, int skip) {
    for (const DataPrompt& prompt : default_check_prompts()) {
        add_text(kBuiltinData, prompt, is_cutting_ ? n_longest_ : kAnyLength);
    }
    add_lengths(document_prompt());
    add_lengths(source_prompt());
    std::vector<BenchPrompt>& prompts = collected_.prompts;
    const auto place = [&](int n) {
        return prompts.begin() + std::min(std::ssize(prompts), std::ptrdiff_t{n});
    };
    prompts.erase(prompts.begin(), place(skip));
    if (limit > 0) {
        prompts.erase(place(limit), prompts.end());
    }
}

void BenchPromptCollector::add_synthetic(int depth) {
    if (depth > n_room_) {
        skip(concat(kSynthetic, ": depth ", depth),
             concat("expected at most ", n_room_, ", so that an answer fits the context of ",
                    engine_.config().n_ctx));
        return;
    }
    const std::vector<Token> text = engine_.tokenize(builtin_document());
    BenchPrompt prompt{.data = kSynthetic,
                       .id = kSynthetic,
                       .task = kSynthetic,
                       .depth = depth,
                       .n_document_tokens = depth};
    // A text that is too short is repeated.
    for (int i = 0; i < depth; ++i) {
        prompt.tokens.push_back(text[static_cast<std::size_t>(i) % text.size()]);
    }
    add(std::move(prompt));
}

}  // namespace knap
