deploy :fleet, do: (node :a) do
end
