#include "bench/copies/copy_simulation.h"

#include <vector>

#include <gtest/gtest.h>

#include "bench/copies/agentic_texts.h"

namespace knap::bench::copy_simulation_test {
namespace {

using Tokens = std::vector<Token>;

const Tokens kText = {9, 9, 1, 2, 3, 4, 5, 6, 7};
constexpr std::size_t kPrompt = 2;

TEST(CopySimulation, WithoutDraftsEveryTokenTakesAPass) {
    const auto nothing = [](std::span<const Token>, int) { return std::vector<CopyNode>(); };
    const CopyCounts counts = simulate_copies(kText, kPrompt, 8, nothing);
    EXPECT_EQ(counts.n_tokens, 6) << "the first token of the answer comes with the prompt";
    EXPECT_EQ(counts.n_passes, 6);
    EXPECT_EQ(counts.n_rows, 0);
    EXPECT_DOUBLE_EQ(counts.speed(0.5), 1);
}

// Always right about the next token, which makes two a pass.
TEST(CopySimulation, CountsWhatIsAcceptedAndWhatFollows) {
    const auto next = [](std::span<const Token> history, int max_nodes) {
        return max_nodes > 0 ? std::vector<CopyNode>{{.token = history.back() + 1}}
                             : std::vector<CopyNode>();
    };
    const CopyCounts counts = simulate_copies(kText, kPrompt, 8, next);
    EXPECT_EQ(counts.n_tokens, 6);
    EXPECT_EQ(counts.n_passes, 3);
    EXPECT_EQ(counts.n_accepted, 3);
    EXPECT_DOUBLE_EQ(counts.tokens_per_pass(), 2);
    EXPECT_DOUBLE_EQ(counts.speed(1), 1);
}

TEST(CopySimulation, AcceptsOnePathOfATree) {
    const std::vector<CopyNode> tree = {{.token = 5, .parent = kPendingNode},
                                        {.token = 6, .parent = 0},
                                        {.token = 1, .parent = kPendingNode},
                                        {.token = 7, .parent = 2},
                                        {.token = 2, .parent = 2}};
    EXPECT_EQ(count_accepted(tree, Tokens{1, 2, 3}), 2);
    EXPECT_EQ(count_accepted(tree, Tokens{5, 6}), 2);
    EXPECT_EQ(count_accepted(tree, Tokens{5}), 1);
    EXPECT_EQ(count_accepted(tree, Tokens{8, 1}), 0);
}

TEST(AgenticTexts, EveryEditChangesTheFile) {
    const auto requests = edit_one_file();
    ASSERT_EQ(requests.size(), 10u);
    std::string before(kEditedFile);
    for (const TextRequest& request : requests) {
        EXPECT_NE(request.answer, before);
        EXPECT_NE(request.prompt.find(before), std::string::npos) << "it is in the conversation";
        before = request.answer;
    }
    EXPECT_EQ(fill_forms().size(), 20u);
}

}  // namespace
}  // namespace knap::bench::copy_simulation_test
