node :server

deploy :fleet do
end
