// Plain decoding and a strategy side by side: both texts, their speeds, what the controller
// decided, and at the end what drafted each text. On a terminal drafted tokens are coloured, unless
// NO_COLOR is set.
//     example_side_by_side [--strategy NAME] MODEL.gguf PROMPT.txt...
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include "knap/chat.h"
#include "knap/knap.h"

namespace {

constexpr int kTokens = 160;
constexpr int kTurns = 3;
constexpr std::size_t kColumn = 56;
constexpr std::size_t kReason = 100;

std::string read_file(const char* path) {
    std::ifstream file(path);
    if (!file) {
        throw knap::Error(std::string(path) + ": expected a file with a prompt, found none");
    }
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string upper_case(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
    return text;
}

bool has_colors() {
    const char* no_color = std::getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) != 0 && (no_color == nullptr || *no_color == '\0');
}

std::string_view color_of(knap::TokenOrigin origin) {
    static const bool is_colored = has_colors();
    if (is_colored && origin == knap::TokenOrigin::accepted) {
        return "\033[32m";
    }
    return is_colored && origin == knap::TokenOrigin::corrected ? "\033[33m" : "";
}

// Prints `text` as a token of that origin.
void print_colored(std::string_view text, knap::TokenOrigin origin) {
    const std::string_view color = color_of(origin);
    std::cout << color << text << (color.empty() ? "" : "\033[0m");
}

// An answer's text and the origin of each of its bytes.
struct Answer {
    std::string text;
    std::vector<knap::TokenOrigin> origins;

    void add(std::string_view piece, knap::TokenOrigin origin) {
        text += piece;
        origins.resize(text.size(), origin);
    }
};

// Part of a text, as byte offsets.
struct Line {
    std::size_t begin = 0;
    std::size_t end = 0;
};

// Splits a text into lines of at most `width` bytes, at spaces if possible.
std::vector<Line> wrap(const std::string& text, std::size_t width) {
    std::vector<Line> lines;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t paragraph = std::min(text.find('\n', begin), text.size());
        std::size_t end = paragraph;
        if (end - begin > width) {
            const std::size_t space = text.rfind(' ', begin + width);
            end = space == std::string::npos || space <= begin ? begin + width : space;
        }
        lines.push_back({begin, end});
        begin = end < text.size() && (end == paragraph || text[end] == ' ') ? end + 1 : end;
    }
    return lines;
}

// Prints each run of bytes of one origin in its colour.
void print_line(const Answer& answer, Line line) {
    while (line.begin < line.end) {
        const knap::TokenOrigin origin = answer.origins[line.begin];
        std::size_t end = line.begin;
        while (end < line.end && answer.origins[end] == origin) {
            ++end;
        }
        print_colored(std::string_view(answer.text).substr(line.begin, end - line.begin), origin);
        line.begin = end;
    }
}

void print_columns(const Answer& left, const Answer& right) {
    const std::vector<Line> a = wrap(left.text, kColumn);
    const std::vector<Line> b = wrap(right.text, kColumn);
    for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
        const Line line = i < a.size() ? a[i] : Line{};
        std::cout << "  ";
        print_line(left, line);
        std::cout << std::string(kColumn - (line.end - line.begin), ' ') << " | ";
        print_line(right, i < b.size() ? b[i] : Line{});
        std::cout << '\n';
    }
}

struct Turn {
    knap::Result result;
    Answer answer;
};

Turn take_turn(knap::Session& session,
               const std::vector<knap::Token>& prompt,
               const knap::SpeculationOptions& how) {
    Answer answer;
    knap::TokenOrigin origin = knap::TokenOrigin::plain;
    knap::Result result = session.generate(
        prompt, {.n_predict = kTokens, .speculation = how},
        {.on_text = [&](std::string_view piece) { answer.add(piece, origin); },
         .on_token = [&](const knap::TokenEvent& event) { origin = event.origin; }});
    return {std::move(result), std::move(answer)};
}

// A strategy and its turns.
struct Side {
    knap::SpeculationOptions how;
    std::vector<Turn> turns{};

    // The turn of median speed.
    const Turn& typical() {
        std::ranges::sort(turns, {}, [](const Turn& t) { return t.result.timings.decode_ms; });
        return turns[turns.size() / 2];
    }
};

void print_legend() {
    if (has_colors()) {
        print_colored("green", knap::TokenOrigin::accepted);
        std::cout << ": drafted and accepted; ";
        print_colored("yellow", knap::TokenOrigin::corrected);
        std::cout << ": the whole model's token in place of a rejected draft\n";
    }
}

void print_decisions(const knap::Result& result) {
    std::printf("What the controller decided:\n");
    for (const knap::Decision& decision : result.decisions) {
        std::printf("  at token %3d: %s\n", decision.token, decision.source.c_str());
        const std::string reason = "because " + decision.reason;
        for (const auto& [begin, end] : wrap(reason, kReason)) {
            std::printf("                %s\n", reason.substr(begin, end - begin).c_str());
        }
    }
}

// What became of a prompt.
struct Outcome {
    std::string path;
    double plain = 0;  // tokens per second
    knap::Result drafting;
    bool is_same = false;  // both texts
};

Outcome compare(knap::Engine& engine, const std::string& strategy, const char* path) {
    const std::vector<knap::Token> prompt =
        knap::ChatFormat(engine).render({.messages = {{"user", read_file(path)}}}).tokens;
    knap::Session session(engine);
    std::printf("\n%s: a prompt of %zu tokens, %d tokens to write, %d turns each\n", path,
                prompt.size(), kTokens, kTurns);
    std::fflush(stdout);

    Side plain{knap::plain_decoding()};
    Side drafting{{.strategy = strategy}};
    for (int turn = 0; turn < kTurns; ++turn) {
        for (Side* side : {&plain, &drafting}) {
            // No turn profits from what an earlier one has learned on the same text.
            session.forget_strategies();
            side->turns.push_back(take_turn(session, prompt, side->how));
        }
    }
    const auto& [a, plain_answer] = plain.typical();
    const auto& [b, drafting_answer] = drafting.typical();
    const bool is_same = a.tokens == b.tokens;
    std::printf("  %-*s | %s\n", static_cast<int>(kColumn), "PLAIN", upper_case(strategy).c_str());
    print_columns(plain_answer, drafting_answer);
    print_legend();
    std::printf("The two texts are %s.\n", is_same ? "identical" : "DIFFERENT");
    const int width = static_cast<int>(std::max(strategy.size(), std::string_view("plain").size()));
    std::printf("%-*s  %6.1f tokens/s\n", width, "plain", a.timings.tokens_per_second);
    std::printf("%-*s  %6.1f tokens/s, %.2f times as fast; %d of %d drafted tokens accepted\n",
                width, strategy.c_str(), b.timings.tokens_per_second,
                b.timings.tokens_per_second / a.timings.tokens_per_second, b.speculation.n_accepted,
                b.speculation.n_drafted);
    if (!b.decisions.empty()) {
        print_decisions(b);
    }
    return {path, a.timings.tokens_per_second, b, is_same};
}

// "61 % (98 of 120)": the share of the text, and accepted of drafted tokens.
std::string share_text(const knap::SourceStatistics& source, int n_tokens) {
    if (source.n_drafted == 0) {
        return "-";
    }
    char text[64];
    std::snprintf(text, sizeof(text), "%.0f %% (%d of %d)", 100.0 * source.n_accepted / n_tokens,
                  source.n_accepted, source.n_drafted);
    return text;
}

// A line for each prompt. Plans that checked a copy first count as plans.
void print_outcomes(const std::vector<Outcome>& outcomes, const std::string& strategy) {
    std::size_t width = std::string_view("prompt").size();
    for (const Outcome& outcome : outcomes) {
        width = std::max(width, outcome.path.size());
    }
    const int first = static_cast<int>(width);
    std::printf(
        "\nWhat wrote each text: accepted tokens, and in brackets how many of the drafted\n");
    std::printf("  %-*s  %6s  %9s  %9s  %6s  %-18s %-18s %s\n", first, "prompt", "tokens",
                "plain/s", (strategy + "/s").c_str(), "faster", "copies", "plans", "whole model");
    for (const Outcome& outcome : outcomes) {
        const knap::Result& result = outcome.drafting;
        const knap::SpeculationStatistics& drafts = result.speculation;
        const knap::SourceStatistics plans{
            .rounds = drafts.plans.rounds + drafts.cascades.rounds,
            .n_drafted = drafts.plans.n_drafted + drafts.cascades.n_drafted,
            .n_accepted = drafts.plans.n_accepted + drafts.cascades.n_accepted};
        const double speed = result.timings.tokens_per_second;
        std::printf("  %-*s  %6d  %9.1f  %9.1f  %6.2f  %-18s %-18s %.0f %%\n", first,
                    outcome.path.c_str(), result.n_prompt, outcome.plain, speed,
                    speed / outcome.plain, share_text(drafts.copies, result.n_generated).c_str(),
                    share_text(plans, result.n_generated).c_str(),
                    100.0 * (result.n_generated - drafts.n_accepted) / result.n_generated);
    }
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<const char*> words(argv + 1, argv + argc);
    std::string strategy = "knapspec";
    if (words.size() > 1 && std::string_view(words[0]) == "--strategy") {
        strategy = words[1];
        words.erase(words.begin(), words.begin() + 2);
    }
    if (words.size() < 2) {
        std::cerr << "usage: example_side_by_side [--strategy NAME] MODEL.gguf PROMPT.txt...\n";
        return 2;
    }
    try {
        knap::Engine engine({.model_path = words[0]});
        std::vector<Outcome> outcomes;
        for (std::size_t i = 1; i < words.size(); ++i) {
            outcomes.push_back(compare(engine, strategy, words[i]));
        }
        print_outcomes(outcomes, strategy);
        return std::ranges::all_of(outcomes, &Outcome::is_same) ? 0 : 1;
    } catch (const std::exception& error) {
        std::cerr << "error: " << error.what() << "\n";
        return 1;
    }
}
