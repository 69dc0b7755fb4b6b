deploy :fleet, pool: "tank"
