#include "support/cosine_bound.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "ggml.h"

#include "base/error.h"

namespace knap::test {
namespace {

std::vector<float> dequantised(const ggml_tensor* matrix) {
    std::vector<float> values(static_cast<std::size_t>(ggml_nelements(matrix)));
    if (matrix->type == GGML_TYPE_F32) {
        std::copy_n(static_cast<const float*>(matrix->data), values.size(), values.begin());
    } else {
        ggml_get_type_traits(matrix->type)
            ->to_float(matrix->data, values.data(), ggml_nelements(matrix));
    }
    return values;
}

double dot(std::span<const float> a, std::span<const float> b) {
    return std::transform_reduce(a.begin(), a.end(), b.begin(), 0.0, std::plus<>(),
                                 [](double x, double y) { return x * y; });
}

double distance(std::span<const float> a, std::span<const float> b) {
    return std::sqrt(std::transform_reduce(a.begin(), a.end(), b.begin(), 0.0, std::plus<>(),
                                           [](double x, double y) { return (x - y) * (x - y); }));
}

}  // namespace

FoldedHead::FoldedHead(std::vector<float> rows, std::size_t n_embd)
    : rows_(std::move(rows)), n_embd_(n_embd) {}

FoldedHead::FoldedHead(const ModelTensors& tensors)
    : rows_(dequantised(tensors.output)), n_embd_(static_cast<std::size_t>(tensors.output->ne[0])) {
    KNAP_ASSERT(tensors.output_b == nullptr, "a bias does not scale with the stream");
    const std::vector<float> norm = dequantised(tensors.output_norm);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        rows_[i] *= norm[i % n_embd_];
    }
}

std::span<const float> FoldedHead::row(std::size_t token) const {
    return std::span(rows_).subspan(token * n_embd_, n_embd_);
}

std::vector<double> FoldedHead::scores(std::span<const float> stream) const {
    std::vector<double> scores;
    for (std::size_t token = 0; token < n_vocab(); ++token) {
        scores.push_back(dot(row(token), stream));
    }
    return scores;
}

std::size_t FoldedHead::argmax(std::span<const float> stream) const {
    const std::vector<double> all = scores(stream);
    return static_cast<std::size_t>(std::ranges::max_element(all) - all.begin());
}

// A stream as long as x at distance d from it has the cosine 1 - d^2 / (2 |x|^2). Over such a
// distance the margin over a token j shrinks by at most d |w_choice - w_j|. A whole plane lies
// between the two tokens, at an angle with the sine margin_j / (|x| |w_choice - w_j|) from x.
CosineBound cosine_bound(const FoldedHead& head, std::span<const float> stream) {
    const std::vector<double> scores = head.scores(stream);
    const double length = std::sqrt(dot(stream, stream));
    CosineBound bound{
        .choice = static_cast<std::size_t>(std::ranges::max_element(scores) - scores.begin()),
        .margin = std::numeric_limits<double>::infinity()};
    double farthest = 0;
    double least_sine = std::numeric_limits<double>::infinity();
    for (std::size_t token = 0; token < scores.size(); ++token) {
        if (token == bound.choice) {
            continue;
        }
        const double margin = scores[bound.choice] - scores[token];
        const double apart = distance(head.row(bound.choice), head.row(token));
        const double sine = apart == 0 ? 0 : margin / (length * apart);
        bound.margin = std::min(bound.margin, margin);
        farthest = std::max(farthest, apart);
        if (sine < least_sine) {
            least_sine = sine;
            bound.nearest = token;
        }
    }
    const double shift = bound.margin / (length * farthest);
    bound.of_paper = 1 - shift * shift / 2;
    bound.least = std::sqrt(1 - std::min(1.0, least_sine * least_sine));
    return bound;
}

}  // namespace knap::test
