#include "search/cosine.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "base/error.h"

namespace knap {

namespace {

// Independent partial sums, so that the compiler can vectorise the loop.
constexpr std::size_t kLanes = 8;
using Lanes = std::array<double, kLanes>;

double total(const Lanes& lanes) {
    return std::accumulate(lanes.begin(), lanes.end(), 0.0);
}

struct Products {
    Lanes ab{};
    Lanes aa{};
    Lanes bb{};

    void add(std::size_t lane, double a, double b) {
        ab[lane] += a * b;
        aa[lane] += a * a;
        bb[lane] += b * b;
    }
};

Products products(std::span<const float> a, std::span<const float> b) {
    Products sums;
    std::size_t i = 0;
    for (; i + kLanes <= a.size(); i += kLanes) {
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
            sums.add(lane, a[i + lane], b[i + lane]);
        }
    }
    for (std::size_t lane = 0; i < a.size(); ++i, ++lane) {
        sums.add(lane, a[i], b[i]);
    }
    return sums;
}

}  // namespace

double cosine(std::span<const float> a, std::span<const float> b) {
    KNAP_ASSERT(a.size() == b.size(), "rows of one stream");
    const Products sums = products(a, b);
    const double norms = std::sqrt(total(sums.aa)) * std::sqrt(total(sums.bb));
    return norms == 0 ? 0 : total(sums.ab) / norms;
}

double sum_of_cosines(std::span<const float> a, std::span<const float> b, int n_rows) {
    KNAP_ASSERT(n_rows > 0 && a.size() == b.size(), "both hold the same rows");
    const std::size_t row_size = a.size() / static_cast<std::size_t>(n_rows);
    double sum = 0;
    for (std::size_t first = 0; first < a.size(); first += row_size) {
        sum += cosine(a.subspan(first, row_size), b.subspan(first, row_size));
    }
    return sum;
}

}  // namespace knap
