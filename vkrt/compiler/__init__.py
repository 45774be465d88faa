"""Compiler: from the bytes of a program to what the runtime carries out; no driver is needed.

    .pte, .ptd --Description--> Graph --passes, lowering--> CommandList --PlanSearch--> MemoryPlan
      --Planned--> Executable --PlanFiles--> a file, with which later loads begin
"""
