#include "serve/engine/metrics_page.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace knap {

std::string metric_label(std::string_view name, std::string_view value) {
    std::string label = std::string(name) + "=\"";
    for (const char letter : value) {
        if (letter == '"' || letter == '\\') {
            label += '\\';
        }
        label += letter == '\n' ? ' ' : letter;
    }
    return label + "\"";
}

std::string joined_labels(const std::string& first, const std::string& second) {
    return first.empty() || second.empty() ? first + second : first + "," + second;
}

void MetricsPage::declare(std::string_view name, std::string_view type, std::string_view help) {
    out_ << "# HELP " << name << " " << help << "\n# TYPE " << name << " " << type << "\n";
}

void MetricsPage::histogram(const std::string& name,
                            std::string_view help,
                            const Histogram& histogram,
                            const std::string& labels) {
    declare(name, "histogram", help);
    const std::vector<double>& bounds = histogram.upper_bounds();
    for (std::size_t i = 0; i < bounds.size(); ++i) {
        std::ostringstream bound;
        bound << bounds[i];
        sample(name + "_bucket", joined_labels(labels, metric_label("le", bound.str())),
               histogram.cumulative(i));
    }
    const std::int64_t n = histogram.cumulative(bounds.size());
    sample(name + "_bucket", joined_labels(labels, metric_label("le", "+Inf")), n);
    sample(name + "_sum", labels, histogram.sum());
    sample(name + "_count", labels, n);
}

}  // namespace knap
