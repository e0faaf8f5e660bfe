// Drafted tokens as a tree below the pending token, which is the last one emitted and not yet in
// the cache. A chain is a tree of width one. Parents come before their children, and the children
// of a node are tried in the order of their indices.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "knap/types.h"

#include "sampling/distribution.h"

namespace knap {

inline constexpr int kPendingNode = -1;  // the parent of the first drafts
inline constexpr int kNoNode = -1;       // no child, no sibling

// The row of a node in passes over the pending token and the tree. The pending token is row 0.
inline std::size_t row_of(int node) {
    const int row = node + 1;
    return static_cast<std::size_t>(row);
}

class DraftTree {
  public:
    void clear();
    // Adds a child of `parent` (kPendingNode or an earlier node). Returns its index.
    int add(Token token, int parent);
    // Replaces the tree by a chain of these tokens.
    void set_chain(std::span<const Token> tokens);
    // Records that the children of `parent` were drawn from `q` without replacement, in their
    // order. Otherwise they count as chosen deterministically: q is one-hot for each in turn.
    void set_drawn_from(int parent, const Distribution& q);

    int n_nodes() const { return static_cast<int>(tokens_.size()); }
    bool is_empty() const { return tokens_.empty(); }
    Token token(int node) const { return tokens_[static_cast<std::size_t>(node)]; }
    int parent(int node) const { return parents_[static_cast<std::size_t>(node)]; }
    // The first drafts have depth 1.
    int depth(int node) const { return depths_[static_cast<std::size_t>(node)]; }
    int max_depth() const { return max_depth_; }  // 0: empty
    bool is_chain() const { return is_chain_; }   // node i is the only child of node i - 1
    std::span<const Token> tokens() const { return tokens_; }
    // The first child of `parent`, and the next sibling of a node, or kNoNode.
    int first_child(int parent) const { return links(parent).first_child; }
    int next_sibling(int node) const { return links(node).next_sibling; }
    const Distribution* drawn_from(int parent) const;  // null: chosen deterministically

  private:
    static constexpr int kNoSource = -1;

    struct Links {
        int first_child = kNoNode;
        int last_child = kNoNode;
        int next_sibling = kNoNode;
        int source = kNoSource;  // of the children, in sources_
    };

    Links& links(int node) { return links_[row_of(node)]; }
    const Links& links(int node) const { return links_[row_of(node)]; }

    std::vector<Token> tokens_;                         // [n_nodes]
    std::vector<int> parents_;                          // [n_nodes]
    std::vector<int> depths_;                           // [n_nodes]
    std::vector<Links> links_ = std::vector<Links>(1);  // [n_nodes + 1], the pending token's first
    int max_depth_ = 0;
    bool is_chain_ = true;
    // The distributions that children were drawn from. Entries from n_sources_ on only keep memory.
    std::vector<Distribution> sources_;
    std::size_t n_sources_ = 0;
};

}  // namespace knap
