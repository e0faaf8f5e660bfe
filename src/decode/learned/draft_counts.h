// How many drafts were judged, and how many of them were right.
#pragma once

namespace knap {

struct DraftCounts {
    double right = 0;
    double all = 0;

    void add(const DraftCounts& more) {
        right += more.right;
        all += more.all;
    }
    // The same share of right ones, of at most `most`.
    DraftCounts at_most(double most) const {
        return all > most ? DraftCounts{.right = right * most / all, .all = most} : *this;
    }
    // Halves the counts until there are at most `most`, so that old evidence fades.
    void fade(double most) {
        while (all > most) {
            right /= 2;
            all /= 2;
        }
    }

    bool operator==(const DraftCounts&) const = default;
};

}  // namespace knap
