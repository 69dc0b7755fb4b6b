#include "core/identity.hpp"

#include "base/number.hpp"

namespace zed {
std::string ControllerTerm::str() const {
  return std::to_string(number) + "-" + controller.str();
}

std::optional<ControllerTerm> ControllerTerm::parse(std::string_view text) {
  std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  auto number = parse_number<std::uint64_t>(text.substr(0, dash));
  auto controller = ControllerId::parse(text.substr(dash + 1));
  if (!number || !controller) return std::nullopt;
  return ControllerTerm{*number, *controller};
}

std::string Generation::str() const {
  return term.str() + "-" + std::to_string(counter);
}

std::string Generation::brief() const {
  return std::to_string(term.number) + "." + std::to_string(counter);
}

std::optional<Generation> Generation::parse(std::string_view text) {
  std::size_t dash = text.rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  auto term = ControllerTerm::parse(text.substr(0, dash));
  auto counter = parse_number<std::uint64_t>(text.substr(dash + 1));
  if (!term || !counter) return std::nullopt;
  return Generation{*term, *counter};
}

std::string branch_leaf(std::string_view leaf, const Timeline& timeline) {
  return std::string(leaf) + ".t" + std::to_string(timeline.term.number) + "-" +
         std::to_string(timeline.counter) + "-" + timeline.term.controller.str().substr(0, 8);
}

}  // namespace zed
