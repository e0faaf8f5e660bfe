#include "decode/copies/copy_tree.h"

#include <algorithm>
#include <queue>
#include <utility>

namespace knap {

namespace {

class CopyTree {
  public:
    CopyTree(const CopyAcceptance& next, const CopyAcceptance& later, const CopyTreeLimits& limits)
        : next_(next), later_(later), limits_(limits) {}

    std::vector<CopyNode> grow(std::span<const Match> matches) {
        add_children(kPendingNode, matches);
        while (!waiting_.empty() && static_cast<int>(nodes_.size()) < limits_.max_nodes) {
            const Waiting best = waiting_.top();
            waiting_.pop();
            nodes_.push_back(best.node);
            add_children(static_cast<int>(nodes_.size()) - 1, best.matches);
        }
        return std::move(nodes_);
    }

  private:
    struct Waiting {
        CopyNode node;
        std::vector<Match> matches;  // after it

        bool operator<(const Waiting& other) const { return node.reached < other.node.reached; }
    };

    void add_children(int parent, std::span<const Match> matches) {
        const bool is_first = parent == kPendingNode;
        const double reached = is_first ? 1 : nodes_[static_cast<std::size_t>(parent)].reached;
        set_path(parent);
        rank_candidates(matches, path_, limits_.width, candidates_);
        for (CopyCandidate& candidate : candidates_) {
            const double rate = (is_first ? next_ : later_).at(candidate.evidence);
            if (reached * rate < limits_.least_reached) {
                continue;
            }
            for (Match& match : candidate.matches) {
                ++match.next;
                match.length = std::min(match.length + 1, SuffixIndex::kLongestMatch);
            }
            waiting_.push(
                {.node = {.token = candidate.token, .parent = parent, .reached = reached * rate},
                 .matches = std::move(candidate.matches)});
        }
    }

    // The tokens from the first draft to `node`.
    void set_path(int node) {
        path_.clear();
        while (node != kPendingNode) {
            path_.push_back(nodes_[static_cast<std::size_t>(node)].token);
            node = nodes_[static_cast<std::size_t>(node)].parent;
        }
        std::ranges::reverse(path_);
    }

    const CopyAcceptance& next_;
    const CopyAcceptance& later_;
    CopyTreeLimits limits_;
    std::vector<CopyNode> nodes_;
    std::priority_queue<Waiting> waiting_;
    std::vector<Token> path_;
    std::vector<CopyCandidate> candidates_;
};

}  // namespace

std::vector<CopyNode> grow_copy_tree(std::span<const Match> matches,
                                     const CopyAcceptance& next,
                                     const CopyAcceptance& later,
                                     const CopyTreeLimits& limits) {
    return CopyTree(next, later, limits).grow(matches);
}

}  // namespace knap
