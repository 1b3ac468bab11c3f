"""The motion vector of the pack: pose first, then Apple's 52 blendshapes in Apple's order."""

from __future__ import annotations

POSE = ("scale", "pitch", "yaw", "roll", "tx", "ty", "tz")
ARKIT = (
    "eyeBlinkLeft eyeLookDownLeft eyeLookInLeft eyeLookOutLeft eyeLookUpLeft eyeSquintLeft "
    "eyeWideLeft eyeBlinkRight eyeLookDownRight eyeLookInRight eyeLookOutRight eyeLookUpRight "
    "eyeSquintRight eyeWideRight jawForward jawLeft jawRight jawOpen mouthClose mouthFunnel "
    "mouthPucker mouthLeft mouthRight mouthSmileLeft mouthSmileRight mouthFrownLeft "
    "mouthFrownRight mouthDimpleLeft mouthDimpleRight mouthStretchLeft mouthStretchRight "
    "mouthRollLower mouthRollUpper mouthShrugLower mouthShrugUpper mouthPressLeft "
    "mouthPressRight mouthLowerDownLeft mouthLowerDownRight mouthUpperUpLeft mouthUpperUpRight "
    "browDownLeft browDownRight browInnerUp browOuterUpLeft browOuterUpRight cheekPuff "
    "cheekSquintLeft cheekSquintRight noseSneerLeft noseSneerRight tongueOut"
).split()
MOTION_DIMS = len(POSE) + len(ARKIT)
SCALE, PITCH, YAW, ROLL = range(4)

# Position of a blendshape in the motion vector.
BLENDSHAPE = {name: len(POSE) + index for index, name in enumerate(ARKIT)}

EMOTIONS = ("angry", "disgust", "fear", "happy", "neutral", "sad", "surprise", "contempt")
NEUTRAL = EMOTIONS.index("neutral")

FRAMES_PER_SECOND = 25
