// Plain decoding and knapspec side by side: both texts, their speeds, and what the controller
// decided.
//     example_side_by_side MODEL.gguf PROMPT.txt...
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "knap/knap.h"

namespace {

constexpr int kTokens = 160;
constexpr int kTurns = 3;
constexpr std::size_t kColumn = 56;

std::string read_file(const char* path) {
    std::ifstream file(path);
    if (!file) {
        throw knap::Error(std::string(path) + ": expected a file with a prompt, found none");
    }
    return {std::istreambuf_iterator<char>(file), {}};
}

// Splits a text into lines of at most kColumn bytes, at spaces if possible.
std::vector<std::string> wrap(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream paragraphs(text);
    for (std::string rest; std::getline(paragraphs, rest);) {
        while (rest.size() > kColumn) {
            const std::size_t space = rest.rfind(' ', kColumn);
            const std::size_t end = space == std::string::npos || space == 0 ? kColumn : space;
            lines.push_back(rest.substr(0, end));
            rest.erase(0, rest[end] == ' ' ? end + 1 : end);
        }
        lines.push_back(rest);
    }
    return lines;
}

void print_columns(const std::string& left, const std::string& right) {
    const std::vector<std::string> a = wrap(left);
    const std::vector<std::string> b = wrap(right);
    for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
        std::printf("  %-*s | %s\n", static_cast<int>(kColumn), i < a.size() ? a[i].c_str() : "",
                    i < b.size() ? b[i].c_str() : "");
    }
}

// A strategy and its turns.
struct Side {
    knap::SpeculationOptions how;
    std::vector<knap::Result> turns{};

    const knap::Result& typical() {
        std::ranges::sort(turns, {}, [](const knap::Result& r) { return r.timings.decode_ms; });
        return turns[turns.size() / 2];
    }
};

void print_decisions(const knap::Result& result) {
    std::printf("What the controller decided:\n");
    for (const knap::Decision& decision : result.decisions) {
        std::printf("  at token %3d: %s\n                because %s\n", decision.token,
                    decision.source.c_str(), decision.reason.c_str());
    }
}

// Returns true when both texts are the same.
bool compare(knap::Engine& engine, const char* path) {
    const std::vector<knap::ChatMessage> messages{{"user", read_file(path)}};
    const std::vector<knap::Token> prompt =
        engine.tokenize(engine.apply_chat_template(messages), true, true);
    knap::Session session(engine);
    std::printf("\n%s: a prompt of %zu tokens, %d tokens to write, %d turns each\n", path,
                prompt.size(), kTokens, kTurns);
    std::fflush(stdout);

    Side plain{knap::plain_decoding()};
    Side knapspec{{.strategy = "knapspec"}};
    for (int turn = 0; turn < kTurns; ++turn) {
        for (Side* side : {&plain, &knapspec}) {
            // No turn profits from what an earlier one has learned on the same text.
            session.forget_strategies();
            side->turns.push_back(
                session.generate(prompt, {.n_predict = kTokens, .speculation = side->how}));
        }
    }
    const knap::Result& a = plain.typical();
    const knap::Result& b = knapspec.typical();
    const bool is_same = a.tokens == b.tokens;
    std::printf("  %-*s | %s\n", static_cast<int>(kColumn), "PLAIN", "KNAPSPEC");
    print_columns(a.text, b.text);
    std::printf("The two texts are %s.\n", is_same ? "identical" : "DIFFERENT");
    std::printf("plain     %6.1f tokens/s\n", a.timings.tokens_per_second);
    std::printf("knapspec  %6.1f tokens/s, %.2f times as fast; %d of %d drafted tokens accepted\n",
                b.timings.tokens_per_second,
                b.timings.tokens_per_second / a.timings.tokens_per_second, b.speculation.n_accepted,
                b.speculation.n_drafted);
    print_decisions(b);
    return is_same;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::cerr << "usage: example_side_by_side MODEL.gguf PROMPT.txt...\n";
        return 2;
    }
    try {
        knap::Engine engine({.model_path = argv[1]});
        bool are_same = true;
        for (int i = 2; i < argc; ++i) {
            are_same &= compare(engine, argv[i]);
        }
        return are_same ? 0 : 1;
    } catch (const std::exception& error) {
        std::cerr << "error: " << error.what() << "\n";
        return 1;
    }
}
