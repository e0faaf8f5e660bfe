#include "tools/check/verification_error.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "base/error.h"
#include "decode/advance.h"
#include "decode/verifier.h"
#include "runtime/session_impl.h"
#include "tools/check/top_logits.h"

namespace knap {
namespace {

// The shape of a verification's draft tree.
struct DraftShape {
    int depth = 0;  // drafts along the path
    int width = 1;  // candidates per position, of which one is the text's

    int n_rows() const { return 1 + depth * width; }
    bool is_tree() const { return width > 1; }
};

// Most kernels that depend on the number of rows switch at a power of two.
constexpr int kChainRows[] = {2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 32, 64};
constexpr DraftShape kDraftTrees[] = {{1, 2}, {2, 3}, {5, 3}, {12, 4}};
constexpr std::size_t kTailTokens = 64;  // measured at the end of each prompt

// NaN if either is NaN: no bound holds then.
double larger(double a, double b) {
    return a >= b || std::isnan(a) ? a : b;
}

// The shapes of at most `max_rows` rows that fit after `n_tokens` more rows.
std::vector<DraftShape> shapes_for(const Forward& forward,
                                   const Sequence& cache,
                                   std::size_t n_tokens,
                                   int max_rows) {
    const int last_row = cache.committed() + static_cast<int>(n_tokens);
    max_rows = std::min({max_rows, forward.max_rows(last_row), cache.capacity() - last_row});
    std::vector<DraftShape> shapes;
    for (const int n_rows : kChainRows) {
        shapes.push_back({.depth = n_rows - 1});
    }
    shapes.insert(shapes.end(), std::begin(kDraftTrees), std::end(kDraftTrees));
    std::erase_if(shapes, [&](const DraftShape& shape) { return shape.n_rows() > max_rows; });
    return shapes;
}

// Verifies a text whose drafts are all accepted, and compares the logits with single-row passes.
class Verifications {
  public:
    // Everything given must outlive it.
    Verifications(Forward& forward, Sequence& cache, std::span<const Token> tokens)
        : verifier_(forward, cache), cache_(cache), tokens_(tokens), n_vocab_(n_vocab_of(forward)) {
        alone_ = run({});
        for (std::size_t row = 0; row < tokens.size(); ++row) {
            top_.emplace_back(row_of_logits(alone_, row));
        }
    }

    VerificationError measure(const DraftShape& shape) {
        const std::vector<float> logits = run(shape);
        double largest = 0;
        for (std::size_t i = 0; i < logits.size(); ++i) {
            largest = larger(largest, std::abs(double{logits[i]} - double{alone_[i]}));
        }
        VerificationError error{.max_rows = shape.n_rows(),
                                .n_rows = static_cast<int>(tokens_.size())};
        (shape.is_tree() ? error.trees : error.chains) = largest;
        for (std::size_t row = 0; row < top_.size(); ++row) {
            error.gap_change =
                larger(error.gap_change, top_[row].gap_change(row_of_logits(logits, row)));
        }
        return error;
    }

  private:
    static std::size_t n_vocab_of(const Forward& forward) {
        return static_cast<std::size_t>(forward.config().n_vocab);
    }

    std::span<const float> row_of_logits(const std::vector<float>& logits, std::size_t row) const {
        return std::span(logits).subspan(row * n_vocab_, n_vocab_);
    }

    // Logits after every token, [n_vocab, n_tokens].
    std::vector<float> run(const DraftShape& shape);
    // Drafts `tokens`, whose nodes become `path_`. The last one follows its wrong siblings, so that
    // its row has to be moved.
    void set_tree(const DraftShape& shape, std::span<const Token> tokens);
    void keep_path();

    Verifier verifier_;
    Sequence& cache_;
    std::span<const Token> tokens_;
    std::size_t n_vocab_;
    DraftTree tree_;
    std::vector<int> path_;
    std::vector<float> alone_;    // [n_vocab, n_tokens]
    std::vector<TopLogits> top_;  // [n_tokens], of alone_
};

std::vector<float> Verifications::run(const DraftShape& shape) {
    const int n_context = cache_.committed();
    std::vector<float> logits;
    for (auto left = tokens_; !left.empty();) {
        const std::size_t n_drafts =
            std::min(left.size() - 1, static_cast<std::size_t>(shape.depth));
        set_tree(shape, left.subspan(1, n_drafts));
        const ForwardResult result = verifier_.run(left.front(), tree_, {}, {});
        KNAP_ASSERT(result.is_complete, "nobody cancels this pass");
        const auto add_row = [&](int node) {
            const auto row = result.logits.subspan(row_of(node) * n_vocab_, n_vocab_);
            logits.insert(logits.end(), row.begin(), row.end());
        };
        add_row(kPendingNode);
        for (const int node : path_) {
            add_row(node);
        }
        keep_path();
        left = left.subspan(1 + n_drafts);
    }
    cache_.truncate(n_context);
    return logits;
}

void Verifications::set_tree(const DraftShape& shape, std::span<const Token> tokens) {
    tree_.clear();
    path_.clear();
    int parent = kPendingNode;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const Token right = tokens[i];
        const Token wrong = right > 0 ? right - 1 : right + 1;
        const int place = i + 1 == tokens.size() ? shape.width - 1 : 0;
        for (int candidate = 0; candidate < shape.width; ++candidate) {
            const int node = tree_.add(candidate == place ? right : wrong, parent);
            if (candidate == place) {
                path_.push_back(node);
            }
        }
        parent = path_.back();
    }
}

// Makes the rows of the path contiguous, as a round does with an accepted path.
void Verifications::keep_path() {
    const int first_node_row = cache_.committed() + 1;
    int next_row = first_node_row;
    for (const int node : path_) {
        if (first_node_row + node != next_row) {
            cache_.copy_row(first_node_row + node, next_row);
        }
        ++next_row;
    }
    cache_.commit(next_row);
}

// The prompt, repeated if it is short, and cut to the context.
std::vector<Token> text_of(const CheckPrompt& prompt, int n_ctx) {
    std::vector<Token> text = prompt.tokens;
    for (std::size_t i = 0; text.size() <= kTailTokens; ++i) {
        text.push_back(prompt.tokens[i % prompt.tokens.size()]);
    }
    text.resize(std::min(text.size(), static_cast<std::size_t>(n_ctx)));
    return text;
}

}  // namespace

double VerificationError::largest() const {
    return larger(chains, trees);
}

void VerificationError::include(const VerificationError& other) {
    chains = larger(chains, other.chains);
    trees = larger(trees, other.trees);
    gap_change = larger(gap_change, other.gap_change);
    max_rows = std::max(max_rows, other.max_rows);
    n_rows += other.n_rows;
}

double near_tie_bound(const VerificationError& error) {
    return kUnmeasuredFactor * error.gap_change;
}

double rounding_limit(const PeerReport& peer) {
    return kRoundingFactor * peer.flash.max_gap_change;
}

VerificationError measure_verifications(Forward& forward,
                                        Sequence& cache,
                                        std::span<const Token> tokens,
                                        int max_rows) {
    Verifications verifications(forward, cache, tokens);
    VerificationError error;
    for (const DraftShape& shape : shapes_for(forward, cache, tokens.size(), max_rows)) {
        error.include(verifications.measure(shape));
    }
    return error;
}

std::optional<VerificationError> measure_verifications(Engine& engine,
                                                       std::span<const CheckPrompt> prompts,
                                                       const CheckObserver& observer) {
    Session::Impl session(impl_of(engine));
    VerificationError error;
    double n_done = 0;
    for (const CheckPrompt& prompt : prompts) {
        const std::vector<Token> text = text_of(prompt, session.engine.config.n_ctx);
        if (text.size() < 3) {
            continue;  // no room for a context and a draft
        }
        const std::size_t n_tail = std::min(kTailTokens, text.size() - 1);
        session.cache.truncate(0);
        advance(session.forward, session.cache, std::span(text).first(text.size() - n_tail));
        Verifications verifications(session.forward, session.cache, std::span(text).last(n_tail));
        for (const DraftShape& shape :
             shapes_for(session.forward, session.cache, n_tail, session.max_verify_rows())) {
            if (observer.cancelled()) {
                return std::nullopt;
            }
            error.include(verifications.measure(shape));
        }
        observer.progress(++n_done / static_cast<double>(prompts.size()));
    }
    return error;
}

}  // namespace knap
