"""Memory and order, planned before anything is allocated; nothing here knows Vulkan."""
