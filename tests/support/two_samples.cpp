#include "support/two_samples.h"

#include <set>

namespace knap::test {

double chi_square(const TextCounts& a, const TextCounts& b) {
    std::set<std::vector<Token>> outcomes;
    for (const TextCounts* counts : {&a, &b}) {
        for (const auto& [outcome, n] : *counts) {
            outcomes.insert(outcome);
        }
    }
    double sum = 0;
    for (const std::vector<Token>& outcome : outcomes) {
        const double n_a = a.contains(outcome) ? a.at(outcome) : 0;
        const double n_b = b.contains(outcome) ? b.at(outcome) : 0;
        sum += (n_a - n_b) * (n_a - n_b) / (n_a + n_b);
    }
    return sum;
}

}  // namespace knap::test
