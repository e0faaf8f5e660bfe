#include "support/naive_adapter.h"

#include <cmath>

namespace knap::test {
namespace {

using Row = std::vector<double>;

// weight * x; `weight` has n_out rows of n_in numbers.
Row product(std::span<const float> weight, const Row& x) {
    Row y(weight.size() / x.size());
    for (std::size_t out = 0; out < y.size(); ++out) {
        for (std::size_t in = 0; in < x.size(); ++in) {
            y[out] += static_cast<double>(weight[out * x.size() + in]) * x[in];
        }
    }
    return y;
}

Row normed(const Row& x, std::span<const float> weight, double eps) {
    double squares = 0;
    for (const double value : x) {
        squares += value * value;
    }
    const double scale = 1 / std::sqrt(squares / static_cast<double>(x.size()) + eps);
    Row y = x;
    for (std::size_t i = 0; i < y.size(); ++i) {
        y[i] *= scale * static_cast<double>(weight[i]);
    }
    return y;
}

// Rotates channel i of each head with channel i + half.
void rotate(Row& x, std::size_t head_dim, double position, double freq_base) {
    const std::size_t half = head_dim / 2;
    for (std::size_t head = 0; head < x.size(); head += head_dim) {
        for (std::size_t i = 0; i < half; ++i) {
            const double exponent = static_cast<double>(i) / static_cast<double>(half);
            const double angle = position * std::pow(freq_base, -exponent);
            double& a = x[head + i];
            double& b = x[head + half + i];
            const double turned = a * std::cos(angle) - b * std::sin(angle);
            b = a * std::sin(angle) + b * std::cos(angle);
            a = turned;
        }
    }
}

// Attention of `q`, the last row, over all `keys` and `values`, head by head.
Row attend(const Row& q,
           const std::vector<Row>& keys,
           const std::vector<Row>& values,
           std::size_t head_dim) {
    Row out(q.size());
    for (std::size_t head = 0; head < q.size(); head += head_dim) {
        double total = 0;
        for (std::size_t j = 0; j < keys.size(); ++j) {
            double score = 0;
            for (std::size_t i = head; i < head + head_dim; ++i) {
                score += q[i] * keys[j][i];
            }
            const double weight = std::exp(score / std::sqrt(static_cast<double>(head_dim)));
            total += weight;
            for (std::size_t i = head; i < head + head_dim; ++i) {
                out[i] += weight * values[j][i];
            }
        }
        for (std::size_t i = head; i < head + head_dim; ++i) {
            out[i] /= total;
        }
    }
    return out;
}

}  // namespace

std::vector<std::vector<float>> naive_adapter_logits(TinyGguf& adapter,
                                                     const ModelConfig& config,
                                                     const ggml_tensor* head,
                                                     std::span<const float> streams) {
    const auto n_embd = static_cast<std::size_t>(config.n_embd);
    const auto head_dim = static_cast<std::size_t>(config.head_dim);
    const double eps = static_cast<double>(config.rms_eps);
    const double freq_base = static_cast<double>(config.rope.freq_base);
    const std::span<const float> head_weight(static_cast<const float*>(head->data),
                                             static_cast<std::size_t>(ggml_nelements(head)));
    std::vector<Row> keys;
    std::vector<Row> values;
    std::vector<std::vector<float>> logits;
    for (std::size_t row = 0; row < streams.size() / n_embd; ++row) {
        const auto stream = streams.subspan(row * n_embd, n_embd);
        Row x(stream.begin(), stream.end());
        const Row n = normed(x, adapter.tensor("blk.0.attn_norm.weight").values, eps);
        Row q = product(adapter.tensor("blk.0.attn_q.weight").values, n);
        rotate(q, head_dim, static_cast<double>(row), freq_base);
        keys.push_back(product(adapter.tensor("blk.0.attn_k.weight").values, n));
        rotate(keys.back(), head_dim, static_cast<double>(row), freq_base);
        values.push_back(product(adapter.tensor("blk.0.attn_v.weight").values, n));
        const Row added = product(adapter.tensor("blk.0.attn_output.weight").values,
                                  attend(q, keys, values, head_dim));
        for (std::size_t i = 0; i < n_embd; ++i) {
            x[i] += added[i];
        }
        const Row out =
            product(head_weight, normed(x, adapter.tensor("output_norm.weight").values, eps));
        logits.emplace_back(out.begin(), out.end());
    }
    return logits;
}

}  // namespace knap::test
