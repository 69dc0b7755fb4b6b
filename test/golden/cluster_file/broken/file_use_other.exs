defmodule A do
  use GenServer
  deploy :one do
  end
end
