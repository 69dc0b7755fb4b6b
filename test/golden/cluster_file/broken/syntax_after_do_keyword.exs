deploy :fleet, do: (node :a), pool: "tank"
