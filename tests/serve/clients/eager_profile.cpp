// eager_profile FOLDER writes the profile of tools/check/eager_profile.h for the default model and
// prints its path. With it a server drafts the same on every machine, however busy.
#include "tools/check/eager_profile.h"

#include <iostream>

#include "knap/knap.h"

#include "support/default_model.h"

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: eager_profile FOLDER\n";
        return 2;
    }
    const knap::RuntimeConfig config{.model_path = knap::test::default_model().string()};
    std::cout << knap::with_eager_profile(config, knap::Slow::weights, argv[1]).profile << '\n';
}
