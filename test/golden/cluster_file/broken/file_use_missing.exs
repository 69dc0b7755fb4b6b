defmodule A do
  deploy :one do
  end
end
