defmodule :gpu do
  use Zed.DSL
  deploy :one do
  end
end
