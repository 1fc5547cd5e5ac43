// libFuzzer's entry for SAFECF_TARGET; without it, a test of all targets on random inputs.
#include <random>
#include <stdexcept>

#include "targets.hpp"

using namespace safecf::fuzz;

namespace {

bool refused(Target* target, const uint8_t* data, size_t size) try {
  Input input(data, size);
  target(input, input.execution());
  return false;
} catch (const std::invalid_argument&) {
  return true;
}

}  // namespace

#ifdef SAFECF_TARGET
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  refused(SAFECF_TARGET, data, size);
  return 0;
}
#else
int main() {
  std::mt19937 random(1);
  for (Target* const target : kTargets) {
    int count = 0;
    for (int number = 0; number < 2000; ++number) {
      std::vector<uint8_t> bytes(random() % 100);
      const unsigned limit = number % 4 == 0 ? 256 : Input::kHostile;
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() % limit);
      count += refused(target, bytes.data(), bytes.size());
    }
    CHECK(0 < count && count < 1500);
  }
}
#endif
