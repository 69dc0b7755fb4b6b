// What the controller asks for people: files of a copy, commands beside a job. The shell answers
// off the loop; here is only who may ask how much.

#include "agent/matters.hpp"

namespace zed::agent {
namespace {

constexpr std::size_t most_questions = 64;

void answer(Machine& m, std::uint64_t request, Error error) {
  m.say(NodeAnswer{request, std::move(error), std::nullopt});
}

/// A command needs a live attempt: its folder, environment and user are the attempt's.
Status check(const Machine& m, const NodeQuestion& question) {
  const auto* start = std::get_if<StartCommand>(&question);
  if (start == nullptr) return {};
  auto found = m.attempts.find({start->job, start->generation});
  if (found != m.attempts.end() && found->second.has_processes()) return {};
  return fail(ErrorCode::refused, "the job does not run on " + m.name.str() + " any more",
              "zedctl cp copies files of a job that does not run");
}

}  // namespace

void ask(Machine& m, const AskNode& asked) {
  if (m.questions.size() >= most_questions)
    return answer(m, asked.request,
                  {ErrorCode::busy, "too many questions wait on " + m.name.str(), {}, "try again"});
  if (Status fits = check(m, asked.question); !fits)
    return answer(m, asked.request, std::move(fits).error());
  const EffectId id = m.next_effect();
  m.questions[id] = asked.request;
  m.emit(AnswerQuestion{id, asked.question});
}

void answered(Machine& m, const QuestionAnswered& event) {
  auto found = m.questions.extract(event.effect);
  if (found.empty()) return;
  if (event.result)
    m.say(NodeAnswer{found.mapped(), std::nullopt, *event.result});
  else
    answer(m, found.mapped(), event.result.error());
}

}  // namespace zed::agent
