#include "sampling/draft_tree.h"

#include <algorithm>

#include "base/error.h"

namespace knap {

void DraftTree::clear() {
    tokens_.clear();
    parents_.clear();
    depths_.clear();
    links_.assign(1, Links{});
    max_depth_ = 0;
    is_chain_ = true;
    n_sources_ = 0;
}

int DraftTree::add(Token token, int parent) {
    const int node = n_nodes();
    KNAP_ASSERT(parent >= kPendingNode && parent < node, "a parent is added before its children");
    const int node_depth = parent == kPendingNode ? 1 : depth(parent) + 1;
    tokens_.push_back(token);
    parents_.push_back(parent);
    depths_.push_back(node_depth);
    links_.push_back({});
    Links& above = links(parent);
    if (above.first_child == kNoNode) {
        above.first_child = node;
    } else {
        links(above.last_child).next_sibling = node;
    }
    above.last_child = node;
    max_depth_ = std::max(max_depth_, node_depth);
    is_chain_ = is_chain_ && parent == node - 1;
    return node;
}

void DraftTree::set_chain(std::span<const Token> tokens) {
    clear();
    int last = kPendingNode;
    for (const Token token : tokens) {
        last = add(token, last);
    }
}

void DraftTree::set_drawn_from(int parent, const Distribution& q) {
    KNAP_ASSERT(parent >= kPendingNode && parent < n_nodes(), "the parent is a node of the tree");
    int& source = links(parent).source;
    if (source == kNoSource) {
        source = static_cast<int>(n_sources_++);
        if (sources_.size() < n_sources_) {
            sources_.emplace_back();
        }
    }
    sources_[static_cast<std::size_t>(source)] = q;
}

const Distribution* DraftTree::drawn_from(int parent) const {
    const int source = links(parent).source;
    return source == kNoSource ? nullptr : &sources_[static_cast<std::size_t>(source)];
}

}  // namespace knap
