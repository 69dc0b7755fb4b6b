defmodule Zed.Cluster.Watcher do
  @moduledoc false
  # Stands between the controller and the process that watches: it can come back after the
  # controller restarted, which a message box alone cannot.

  use GenServer

  @again 1_000
  @patience 10_000

  def start(controller, receiver, from) do
    case GenServer.start(__MODULE__, {controller, receiver, from}) do
      {:error, {:shutdown, {:error, _, _} = error}} -> error
      other -> other
    end
  end

  def stop(watcher) do
    GenServer.stop(watcher)
  catch
    :exit, _ -> :ok
  end

  @impl true
  def init({controller, receiver, from}) do
    state = %{controller: controller, receiver: receiver, last: from, away: false, monitor: nil}
    Process.monitor(receiver)

    case follow(state) do
      {:ok, state} -> {:ok, state}
      error -> {:stop, {:shutdown, error}}
    end
  end

  @impl true
  def handle_info({:zed_event, event}, state), do: {:noreply, pass_on(event, state)}

  def handle_info({:DOWN, _, :process, receiver, _}, %{receiver: receiver} = state),
    do: {:stop, :normal, state}

  # The controller's process, or its node.
  def handle_info({:DOWN, monitor, :process, _, reason}, %{monitor: monitor} = state),
    do: {:noreply, lost(state, "the controller went away: #{inspect(reason)}")}

  def handle_info(:again, state) do
    case follow(state) do
      {:ok, state} -> {:noreply, state}
      {:error, _, text} -> {:noreply, lost(state, text)}
    end
  end

  # A reply that came after its time-out on a node without aliases, or anything else.
  def handle_info(_, state), do: {:noreply, state}

  defp follow(state) do
    arguments = if state.last, do: %{after: state.last}, else: %{}
    monitor = Process.monitor({:zed, state.controller})

    case call(state.controller, arguments) do
      {:ok, %{events: missed, last: last}} ->
        if state.away, do: send(state.receiver, {:zed_watch, :back})
        # Fewer than we have seen: the controller is a new one, and counts from 1.
        known = if state.last && state.last <= last, do: state.last, else: 0
        state = %{state | last: (state.last && known) || last, away: false, monitor: monitor}
        {:ok, Enum.reduce(missed, state, &pass_on/2)}

      error ->
        Process.demonitor(monitor, [:flush])
        error
    end
  end

  defp call(controller, arguments) do
    GenServer.call({:zed, controller}, {:zed, 1, Zed.Cluster, :watch, [arguments]}, @patience)
  catch
    :exit, reason -> {:error, :unavailable, "#{controller} cannot be reached: #{inspect(reason)}"}
  end

  defp pass_on(%{number: number} = event, state) do
    if state.last == nil or number > state.last do
      send(state.receiver, {:zed_event, event})
      %{state | last: number}
    else
      state
    end
  end

  defp lost(state, text) do
    unless state.away, do: send(state.receiver, {:zed_watch, {:away, text}})
    Process.send_after(self(), :again, @again)
    %{state | away: true, monitor: nil, last: state.last || 0}
  end
end
