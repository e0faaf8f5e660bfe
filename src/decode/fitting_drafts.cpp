#include "decode/fitting_drafts.h"

#include <memory>
#include <vector>

namespace knap {
namespace {

class FittingNodes {
  public:
    explicit FittingNodes(const DraftTree& tree)
        : tree_(tree), stays_(static_cast<std::size_t>(tree.n_nodes())) {}

    // Marks what stays below `parent`, which `constraint` stands after. Only nodes with children
    // need a place of their own, and the last of them takes that of its parent.
    void mark(int parent, std::unique_ptr<TokenConstraint> constraint) {
        const bool are_drawn = tree_.drawn_from(parent) != nullptr;
        std::vector<int> inner;
        for (int node = tree_.first_child(parent); node != kNoNode;
             node = tree_.next_sibling(node)) {
            const bool fits = constraint->fits(tree_.token(node));
            stays_[static_cast<std::size_t>(node)] = fits || are_drawn;
            if (fits && tree_.first_child(node) != kNoNode) {
                inner.push_back(node);
            }
        }
        for (std::size_t i = 0; i < inner.size(); ++i) {
            auto place = i + 1 < inner.size() ? constraint->clone() : std::move(constraint);
            if (place->accept(tree_.token(inner[i]))) {
                mark(inner[i], std::move(place));
            }
        }
    }

    void copy(DraftTree& out) const {
        out.clear();
        std::vector<int> places(stays_.size(), kNoNode);
        for (int node = 0; node < tree_.n_nodes(); ++node) {
            if (!stays_[static_cast<std::size_t>(node)]) {
                continue;
            }
            const int parent = tree_.parent(node);
            const int place =
                parent == kPendingNode ? parent : places[static_cast<std::size_t>(parent)];
            places[static_cast<std::size_t>(node)] = out.add(tree_.token(node), place);
            if (const Distribution* q = tree_.drawn_from(parent)) {
                out.set_drawn_from(place, *q);
            }
        }
    }

  private:
    const DraftTree& tree_;
    std::vector<bool> stays_;  // [n_nodes]
};

}  // namespace

void keep_fitting(const DraftTree& tree, const TokenConstraint& constraint, DraftTree& out) {
    FittingNodes nodes(tree);
    if (!tree.is_empty()) {
        nodes.mark(kPendingNode, constraint.clone());
    }
    nodes.copy(out);
}

}  // namespace knap
