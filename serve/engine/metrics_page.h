// Metrics in Prometheus' text format 0.0.4.
#pragma once

#include <limits>
#include <sstream>
#include <string>
#include <string_view>

#include "serve/engine/histogram.h"

namespace knap {

// NAME="VALUE", escaped.
std::string metric_label(std::string_view name, std::string_view value);
// Two lists of labels, either of which may be empty.
std::string joined_labels(const std::string& first, const std::string& second);

class MetricsPage {
  public:
    MetricsPage() {
        // A counter of seconds grows for months, and its rate comes from small differences.
        out_.precision(std::numeric_limits<double>::digits10);
    }

    // What the samples that follow are.
    void declare(std::string_view name, std::string_view type, std::string_view help);

    template <typename Value>
    void sample(std::string_view name, const std::string& labels, Value value) {
        out_ << name;
        if (!labels.empty()) {
            out_ << "{" << labels << "}";
        }
        out_ << " " << value << "\n";
    }
    template <typename Value>
    void counter(std::string_view name,
                 std::string_view help,
                 Value value,
                 const std::string& labels = {}) {
        declare(name, "counter", help);
        sample(name, labels, value);
    }
    template <typename Value>
    void gauge(std::string_view name,
               std::string_view help,
               Value value,
               const std::string& labels = {}) {
        declare(name, "gauge", help);
        sample(name, labels, value);
    }
    void histogram(const std::string& name,
                   std::string_view help,
                   const Histogram& histogram,
                   const std::string& labels);

    std::string text() const { return out_.str(); }

  private:
    std::ostringstream out_;
};

}  // namespace knap
