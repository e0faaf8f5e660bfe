// eager_profile FOLDER writes the profile of support/eager_profile.h for the default model and
// prints its path. With it a server drafts the same on every machine, however busy.
#include "support/eager_profile.h"

#include <iostream>

#include "support/default_model.h"

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: eager_profile FOLDER\n";
        return 2;
    }
    using namespace knap::test;
    const knap::RuntimeConfig config{.model_path = default_model().string()};
    std::cout << write_eager_profile(config, argv[1], Slow::weights).string() << '\n';
}
