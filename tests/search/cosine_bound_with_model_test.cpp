// The KnapSpec paper's lemma on the default model: what it says about the drafts of some plans.
// Prints the figures of docs/methods.md, "When a cosine decides".
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "knap/knap.h"

#include "base/quantile.h"
#include "forward/plan_text.h"
#include "search/cosine.h"
#include "support/cosine_bound.h"
#include "support/default_model.h"
#include "support/search_rig.h"

namespace knap::test::cosine_bound_with_model_test {
namespace {

constexpr int kRows = 32;
constexpr std::size_t kTokens = 1024;

// The first tokens of the document that is built into `knap bench`.
std::vector<Token> beginning_of_the_document() {
    std::ifstream file(KNAP_ROOT "/cli/bench/texts/document.txt");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const Engine engine({.model_path = default_model(), .n_ctx = 256, .n_threads = 1});
    std::vector<Token> tokens = engine.tokenize(text.substr(0, 8 * kTokens));
    tokens.resize(kTokens);
    return tokens;
}

struct Row {
    CosineBound bound;
    std::span<const float> stream;
};

TEST(CosineBoundOfTheDefaultModel, DecidesFewDraftsAndThoseRightly) {
    SearchRig rig({.model = default_model(),
                   .text = beginning_of_the_document(),
                   .forward = {.capacity = 2 * static_cast<int>(kTokens)}});
    const TargetRows target = rig.target(kRows);
    const FoldedHead head(rig.model.weights->tensors());
    std::vector<Row> rows;
    int n_chosen = 0;
    std::vector<double> below_one_of_paper;
    std::vector<double> below_one;
    for (std::size_t i = 0; i < kRows; ++i) {
        const auto stream =
            std::span(target.streams.back()).subspan(i * head.n_embd(), head.n_embd());
        rows.push_back({cosine_bound(head, stream), stream});
        const CosineBound& bound = rows.back().bound;
        ASSERT_GE(bound.of_paper, bound.least);
        n_chosen += bound.choice == static_cast<std::size_t>(target.choices[i]);
        below_one_of_paper.push_back(1 - bound.of_paper);
        below_one.push_back(1 - bound.least);
    }
    // The model rounds activations to 8 bits.
    EXPECT_GE(n_chosen, kRows - 2);
    std::printf("1 - bound, median and largest: paper %.1e %.1e, least %.1e %.1e\n",
                median(below_one_of_paper), std::ranges::max(below_one_of_paper), median(below_one),
                std::ranges::max(below_one));
    int n_within = 0;
    for (const char* text : {"a=w16+970", "a=w16+896", "a=w16+256", "a=w16+64", "m15=skip",
                             "l15=skip", "l5+10+15+20=skip"}) {
        const std::vector<float> drafted = rig.end_state(parse_plan(text, rig.n_layers()), kRows);
        int n_of_paper = 0;
        int n_of_least = 0;
        int n_agreed = 0;
        std::vector<double> below;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const auto draft = std::span(drafted).subspan(i * head.n_embd(), head.n_embd());
            const double found = cosine(rows[i].stream, draft);
            const bool agrees = head.argmax(draft) == rows[i].bound.choice;
            below.push_back(1 - found);
            n_agreed += agrees;
            n_of_paper += found >= rows[i].bound.of_paper;
            n_of_least += found >= rows[i].bound.least;
            EXPECT_TRUE(agrees || found < rows[i].bound.least) << text << ", row " << i;
        }
        n_within += n_of_least;
        std::printf(
            "%-18s 1 - cosine, median %.1e: above the paper's bound %d, above the least %d, "
            "same argmax %d of %d rows\n",
            text, median(below), n_of_paper, n_of_least, n_agreed, kRows);
    }
    EXPECT_GT(n_within, 0);
}

}  // namespace
}  // namespace knap::test::cosine_bound_with_model_test
