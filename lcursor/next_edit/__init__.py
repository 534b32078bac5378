"""Next-edit prediction: derive the edits that follow from the user's last ones, without a model.

    from lcursor.next_edit.predict import predict
    from lcursor.next_edit.records import Edit

    lines = ("def area(w, height):", "    return width * height")
    edit = Edit("shape.py", 0, ("def area(width, height):",), lines[:1])
    predict({"shape.py": lines}, [edit])[0].new  # ("    return w * height",)

Pure functions on texts; reads no files. Any thread.
"""
