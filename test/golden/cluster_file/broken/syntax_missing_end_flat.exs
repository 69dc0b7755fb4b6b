deploy :fleet do
node :server do
gpu "A100"
end
