defmodule Zed.FakeController do
  @moduledoc false
  # A controller in this very node: it notes what it was asked and answers what it was told to.

  use GenServer

  def start(answers \\ %{}), do: GenServer.start(__MODULE__, answers, name: :zed)

  def asked, do: GenServer.call(:zed, :asked)
  def watchers, do: GenServer.call(:zed, :watchers)
  def tell(number), do: GenServer.call(:zed, {:tell, number})

  def stop do
    if pid = Process.whereis(:zed), do: GenServer.stop(pid)
  end

  def event(number),
    do: %{number: number, at: 1, kind: "job", subject: "job a", text: "#{number}"}

  @impl true
  def init(answers),
    do: {:ok, %{answers: answers, asked: [], watchers: [], newest: answers[:newest] || 0}}

  @impl true
  def handle_call(:asked, _, state), do: {:reply, Enum.reverse(state.asked), state}
  def handle_call(:watchers, _, state), do: {:reply, state.watchers, state}

  def handle_call({:tell, number}, _, state) do
    for pid <- state.watchers, do: send(pid, {:zed_event, event(number)})
    {:reply, :ok, %{state | newest: number}}
  end

  def handle_call({:zed, 1, Zed.Cluster, :watch, [arguments]}, {pid, _}, state) do
    newest = state.newest

    missed =
      case arguments do
        %{after: known} when known > newest -> Enum.map(1..newest//1, &event/1)
        %{after: known} -> Enum.map((known + 1)..newest//1, &event/1)
        %{} -> []
      end

    {:reply, {:ok, %{schema: 1, events: missed, last: newest}},
     %{state | watchers: [pid | state.watchers]}}
  end

  def handle_call({:zed, 1, Zed.Cluster, operation, [arguments]}, _, state) do
    answer = Map.get(state.answers, operation, {:ok, %{schema: 1}})
    {:reply, answer, %{state | asked: [{operation, arguments} | state.asked]}}
  end
end
